//! What locks protect, in its smallest form: a store that keeps the largest token that it has seen for each resource.
//!
//! Owns: comparing and writing in one step, and the journal of what came. Never: knows of locks, leases or time; a token is
//! all that it is shown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A write as it came.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    /// What it changes.
    pub(crate) resource: String,
    /// Under which token.
    pub(crate) token: u64,
    /// Whose.
    pub(crate) who: String,
    /// When it came.
    pub(crate) at_us: u64,
    /// Whether it was let in.
    pub(crate) is_accepted: bool,
}

/// The store. A clone is another handle to the same.
#[derive(Clone, Default)]
pub(crate) struct Store(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    largest: BTreeMap<String, u64>,
    journal: Vec<Write>,
}

impl Store {
    /// Writes, unless a larger token was here before.
    pub(super) fn write(&self, resource: &str, token: u64, who: &str, at_us: u64) -> bool {
        let mut inner = self.lock();
        let largest = inner.largest.entry(resource.to_owned()).or_default();
        let is_accepted = lets_in(token, *largest);
        *largest = token.max(*largest);
        let (resource, who) = (resource.to_owned(), who.to_owned());
        inner.journal.push(Write { resource, token, who, at_us, is_accepted });
        is_accepted
    }

    /// Everything that came, in order.
    pub(crate) fn journal(&self) -> Vec<Write> {
        self.lock().journal.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The comparison that a protected thing makes.
fn lets_in(token: u64, largest: u64) -> bool {
    if crate::plants::is("store_refuses_equal_tokens") {
        return token > largest;
    }
    token >= largest || crate::plants::is("store_lets_old_tokens_in")
}
