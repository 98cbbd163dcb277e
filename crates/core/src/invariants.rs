//! What must always be true, numbered. Checked after every command on what it touched, and whole on demand.
//!
//! Never: input from outside. That is validated; a broken invariant is a bug, and the replica stops.

use crate::index::{Index, Queue};
use crate::lease::{Holding, Lease};
use crate::request::{RequestState, Waiting};
use crate::table::LockTable;
use kunci_types::ResourceName;

/// Stops the replica: its state can't be trusted.
#[expect(clippy::panic, reason = "a replica with a broken invariant must stop before it answers")]
pub(crate) fn broken(what: &str) -> ! {
    panic!("invariant broken: {what}; this is a bug in kunci: keep the data folder and report it")
}

impl LockTable {
    /// Checks everything, derived state included; O(n log n), for tests and restores.
    ///
    /// # Panics
    /// When an invariant is broken.
    pub fn check(&self) {
        self.check_resources();
        // I8: what is derived is what a restore would derive.
        assert!(
            self.index == Index::derive(&self.state),
            "I8: the index differs from what the state derives"
        );
    }

    /// Checks every resource.
    pub(crate) fn check_resources(&self) {
        let held = self.state.holdings.into_iter().map(|(resource, _)| resource);
        for resource in held.chain(self.index.queues.keys()) {
            self.check_touched(resource);
        }
    }

    /// Checks one resource, its lease and its queue's head; O(log n) whatever the queue's length.
    pub(crate) fn check_touched(&self, resource: &ResourceName) {
        let queue = self.index.queues.get(resource);
        match self.state.holdings.get(resource).map(|holding| &**holding) {
            Some(Holding::Held(lease)) => self.check_lease(resource, lease),
            Some(Holding::Closed { until }) => {
                // I4: what ends by time has a deadline in the index.
                assert!(
                    self.index.holdings.contains(&(*until, resource.clone())),
                    "I4: {resource} never reopens"
                );
            }
            #[cfg(kunci_plants)]
            None if crate::planted::is(crate::planted::Bug::WakeUpLostUnseen) => {}
            None => {
                // I3 (S6, L1): nobody attached waits for a free resource.
                let attached = queue.map_or(0, |queue| queue.attached.len());
                assert!(attached == 0, "I3: {resource} is free and {attached} attached waiters wait");
            }
        }
        self.check_waiters(resource);
    }

    /// Checks the queue of one resource alone: while waits end, the lease that they wait for may be due and is
    /// still to be ended.
    pub(crate) fn check_waiters(&self, resource: &ResourceName) {
        if let Some(queue) = self.index.queues.get(resource) {
            self.check_queue(resource, queue);
        }
    }

    fn check_lease(&self, resource: &ResourceName, lease: &Lease) {
        let head = &self.state.head;
        // I2 (S2): no token is newer than the revision.
        assert!(
            lease.token.revision() <= head.revision,
            "I2: {resource} has token {} of the future",
            lease.token
        );
        // I4 (S7, L1): a current lease ends in the future, and the index knows when.
        assert!(lease.until > head.now, "I4: {resource} is held past its end");
        assert!(
            self.index.holdings.contains(&(lease.until, resource.clone())),
            "I4: {resource} never expires"
        );
        // I5 (S1, S5): the lease's request says that it is granted, with this token, on this resource.
        let Some(record) = self.request(&lease.request) else { broken("I5: a lease has no request") };
        assert!(record.resource == *resource, "I5: {resource} is held by a request for {}", record.resource);
        let granted = match &record.state {
            RequestState::Granted { token } => *token == lease.token,
            RequestState::Waiting(_) | RequestState::Ended { .. } | RequestState::Closed { .. } => false,
        };
        assert!(granted, "I5: the request that holds {resource} doesn't know it");
    }

    fn check_queue(&self, resource: &ResourceName, queue: &Queue) {
        // I7: no empty queue is kept.
        assert!(!queue.all.is_empty(), "I7: {resource} keeps an empty queue");
        for (place, request) in
            queue.attached.first_key_value().into_iter().chain(queue.all.first_key_value())
        {
            // I6 (S6): who is queued waits, at this place.
            let waits = self.waiting(request).is_some_and(|waiting: &Waiting| waiting.place == *place);
            assert!(waits, "I6: revision {place} is queued for {resource} and doesn't wait");
        }
        if let Some(place) = queue.attached.keys().next() {
            assert!(
                queue.all.contains_key(place),
                "I6: revision {place} is attached to {resource} and not queued"
            );
        }
    }
}
