//! What is counted since the process began.
//!
//! Owns: the numbers behind `/metrics`. Never: a label that grows with resources or owners.

use super::rejections::Rejections;
use kunci_api::{Code, Problem};
use std::sync::atomic::{AtomicU64, Ordering};

/// The limits of the policy by their names there, and last the room on the disk.
const LIMITS: [&str; 7] = [
    "waitersPerResourceMax",
    "waitersPerNamespaceMax",
    "waitersMax",
    "leasesPerNamespaceMax",
    "leasesMax",
    "outcomesMax",
    STORAGE,
];
const STORAGE: &str = "storage";

/// Counts since the process began.
#[derive(Debug)]
pub struct Counters {
    refusals: Vec<AtomicU64>,
    limits: [AtomicU64; LIMITS.len()],
    pub(super) rejections: Rejections,
}

impl Default for Counters {
    fn default() -> Self {
        let refusals = Code::ALL.iter().map(|_| AtomicU64::new(0)).collect();
        Self { refusals, limits: Default::default(), rejections: Rejections::default() }
    }
}

impl Counters {
    pub(super) fn count_refusal(&self, code: Code) {
        let at = Code::ALL.iter().position(|other| *other == code);
        if let Some(count) = at.and_then(|at| self.refusals.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a refusal that came of a limit.
    pub(super) fn count_limit(&self, problem: &Problem) {
        let storage = (problem.code == Code::StorageLow).then_some(STORAGE);
        let Some(limit) = problem.limit.as_deref().or(storage) else { return };
        let at = LIMITS.iter().position(|name| *name == limit);
        if let Some(count) = at.and_then(|at| self.limits.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Each limit with how often it was the reason for a refusal.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (&'static str, u64)> {
        LIMITS.into_iter().zip(self.limits.iter().map(|count| count.load(Ordering::Relaxed)))
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
