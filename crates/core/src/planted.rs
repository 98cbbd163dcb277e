//! Where the simulator plants bugs of the locks themselves. In no build but the simulator's (`--cfg kunci_plants`).
//!
//! Owns: what a planted bug does to a table. Never: planted by itself; without a name of a plant the table is as it is.

use crate::request::RequestState;
use crate::table::LockTable;
use crate::{RequestKey, reply::Grant};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, Ordering};
use kunci_types::{ResourceName, Revision};

/// A bug inside of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// None.
    None,
    /// A released resource isn't handed on, now and then.
    WakeUpLost,
    /// The last waiter is served first.
    LastFirst,
    /// A takeover gives every lease an hour.
    GraceWithoutBound,
    /// As `WakeUpLost`, and the table doesn't see it itself.
    WakeUpLostUnseen,
    /// A waiter whose client is gone keeps its place until its wait is over.
    WaitersStay,
}

static BUG: AtomicU8 = AtomicU8::new(Bug::None as u8);

/// Plants it in every table of this program.
pub fn plant(bug: Bug) {
    BUG.store(bug as u8, Ordering::Relaxed);
}

pub(crate) fn is(bug: Bug) -> bool {
    BUG.load(Ordering::Relaxed) == bug as u8
}

impl LockTable {
    /// Forgets every request that isn't waiting and has no current lease.
    pub fn forget_outcomes(&mut self) {
        let ended: Vec<RequestKey> = self.index.ended.iter().map(|(_, request)| request.key()).collect();
        for request in ended {
            self.forget(&request);
        }
        self.index.ended.clear();
    }

    fn forget(&mut self, request: &RequestKey) {
        let forgotten = self.state.requests.remove(request);
        if let Some(RequestState::Ended { token, lease_id, .. }) =
            forgotten.map(|record| record.state.clone())
        {
            self.index.by_lease_id.remove(&lease_id);
            self.index.by_token.remove(&token);
        }
    }

    /// Drops every waiter without a word.
    pub fn forget_waiters(&mut self) {
        let waiting: Vec<RequestKey> = self.index.waits.values().cloned().collect();
        for request in waiting {
            self.leave_queue(&request);
            self.state.requests.remove(&request);
        }
    }

    /// Sets the count of events, and with it the next token, back by so many, but not below a current token.
    pub fn set_revision_back(&mut self, by: u64) {
        let largest = self.index.by_token.keys().next_back().map_or(0, |token| token.get());
        let revision = self.state.head.revision.get().saturating_sub(by).max(largest);
        if let Some(revision) = Revision::new(revision) {
            self.state.head.revision = revision;
        }
    }

    /// The current lease of a resource, as its holder was told.
    pub fn current(&self, resource: &ResourceName) -> Option<Grant> {
        Some(self.lease(resource)?.grant(self.now(), crate::reply::Told::Again))
    }

    /// How often a leader took over.
    pub fn take_overs(&self) -> u64 {
        self.state.head.term
    }

    /// Every resource that is held.
    pub fn held(&self) -> Vec<ResourceName> {
        self.state.holdings.into_iter().map(|(resource, _)| resource.clone()).collect()
    }
}
