//! Detach: a waiter's call has gone away. It keeps its place for the waiter grace and is passed over meanwhile.

use crate::command::{Departure, Detach};
use crate::effects::Effects;
use crate::lease::Sight;
use crate::reply::{DetachReply, Told};
use crate::request::{RequestKey, RequestState, Returnable, Waiting};
use crate::table::LockTable;
use kunci_types::{Attempt, ResourceName, Revision};

impl LockTable {
    pub(super) fn detach(&mut self, effects: &mut Effects, detach: &Detach) -> DetachReply {
        let Some(record) = self.request(&detach.request) else { return DetachReply::Stale };
        let resource = record.resource.clone();
        match &record.state {
            RequestState::Waiting(waiting) if waiting.attempt() == Some(detach.attempt) => {
                let position = self.position(&resource, waiting.place);
                if detach.departure == Departure::Told {
                    self.make_returnable(&detach.request);
                }
                self.detach_waiter(effects, &detach.request);
                self.check_touched(&resource);
                match self.waiting(&detach.request).map(Waiting::attempt) {
                    Some(_) => DetachReply::Detached { position },
                    None => DetachReply::Dropped,
                }
            }
            RequestState::Granted { .. } => self.detach_granted(&resource, detach.attempt),
            RequestState::Waiting(_) | RequestState::Ended { .. } | RequestState::Closed { .. } => {
                DetachReply::Stale
            }
        }
    }

    fn make_returnable(&mut self, request: &RequestKey) {
        if let RequestState::Waiting(waiting) = &mut self.request_mut(request).state {
            waiting.terms.returnable = Returnable::Yes;
        }
    }

    fn detach_granted(&self, resource: &ResourceName, attempt: Attempt) -> DetachReply {
        match self.lease(resource) {
            Some(lease) => match lease.sight {
                Sight::Meant { attempt: meant, .. } if meant == attempt => {
                    DetachReply::Granted(lease.grant(self.now(), Told::First))
                }
                Sight::Meant { .. } | Sight::Seen => DetachReply::Stale,
            },
            None => DetachReply::Stale,
        }
    }

    /// The place in the queue, from 1.
    pub(crate) fn position(&self, resource: &ResourceName, place: Revision) -> u64 {
        self.index.queues.get(resource).map_or(0, |queue| queue.all.range(..=place).count() as u64)
    }
}
