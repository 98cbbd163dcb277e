//! What holders believe, asked of them all at the same moment.
//!
//! Owns: who has a `HeldLock`, and what it says when it is asked. Never: keeps one alive.

use kunci_client::{HeldLock, State};
use kunci_process::Process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Everybody who was given a lock. A clone is another handle to the same.
#[derive(Clone, Default)]
pub(crate) struct Beliefs(Arc<Mutex<Vec<Believer>>>);

/// A holder, as it was at one look.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What it was given.
    pub(crate) resource: String,
    /// Who it is.
    pub(crate) who: String,
    /// Under which token.
    pub(crate) token: u64,
    /// Whether it would say that the lock is its own.
    pub(crate) believes: bool,
    /// It has said before that the lock is lost.
    pub(crate) had_lost: bool,
}

struct Believer {
    seen: Seen,
    process: Process,
    lock: Weak<HeldLock>,
}

impl Beliefs {
    /// From now on a lock is asked, in its process's name and by its clock, until nobody has it any more.
    pub(super) fn add(&self, process: &Process, who: &str, lock: &Arc<HeldLock>) {
        let seen = Seen {
            resource: lock.resource().to_string(),
            who: who.to_owned(),
            token: lock.token().get(),
            believes: true,
            had_lost: false,
        };
        self.lock().push(Believer { seen, process: process.clone(), lock: Arc::downgrade(lock) });
    }

    /// Asks everybody.
    pub(super) fn ask(&self) -> Vec<Seen> {
        let mut all = self.lock();
        all.retain(|believer| !believer.process.is_killed() && believer.lock.strong_count() > 0);
        let seen = all.iter_mut().filter_map(|believer| {
            let lock = believer.lock.upgrade()?;
            let state = believer.process.enter(|| lock.state());
            let seen = &mut believer.seen;
            seen.had_lost |= !seen.believes;
            seen.believes = state != State::Lost;
            Some(seen.clone())
        });
        seen.collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Believer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
