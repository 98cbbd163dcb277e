//! What is counted since the process began.
//!
//! Owns: the numbers behind `/metrics`. Never: a label that grows with resources or owners.

use super::rejections::Rejections;
use kunci_api::Code;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the process began.
#[derive(Debug)]
pub struct Counters {
    refusals: Vec<AtomicU64>,
    pub(super) rejections: Rejections,
}

impl Default for Counters {
    fn default() -> Self {
        let refusals = Code::ALL.iter().map(|_| AtomicU64::new(0)).collect();
        Self { refusals, rejections: Rejections::default() }
    }
}

impl Counters {
    pub(super) fn count_refusal(&self, code: Code) {
        let at = Code::ALL.iter().position(|other| *other == code);
        if let Some(count) = at.and_then(|at| self.refusals.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Each code with how often a call was refused with it.
    pub fn refusals(&self) -> impl Iterator<Item = (Code, u64)> {
        Code::ALL.iter().zip(&self.refusals).map(|(code, count)| (*code, count.load(Ordering::Relaxed)))
    }

    /// How many stale tokens were reported by protected resources.
    pub fn fencing_rejections(&self) -> u64 {
        self.rejections.taken()
    }
}
