//! The beginning and the end of a lease, and the hand-off between them.
//!
//! Owns: the only place where tokens are minted and leases made. Never: decides who asks rightly.

use crate::effects::Effects;
use crate::event::Change;
use crate::index::Counted;
use crate::invariants::broken;
use crate::lease::{Grace, Holding, Lease, Sight};
use crate::reply::{AcquireReply, Grant, LeaseEnd, SpanOf, Told, WaitEnd};
use crate::request::{Attachment, Request, RequestKey, RequestState, Terms, Waiting};
use crate::table::LockTable;
use alloc::sync::Arc;
use kunci_types::{Attempt, Owner, Reason, ResourceName, Revision};

/// How a lease is to end.
#[derive(Clone, Copy)]
pub(crate) enum End<'a> {
    Released,
    Expired,
    Forced(&'a Reason),
    Abandoned,
}

impl End<'_> {
    fn how(self) -> LeaseEnd {
        match self {
            Self::Released => LeaseEnd::Released,
            Self::Expired => LeaseEnd::Expired,
            Self::Forced(_) => LeaseEnd::Forced,
            Self::Abandoned => LeaseEnd::Abandoned,
        }
    }

    /// Whether the lease's lock-delay applies: only where its holder may still be at work.
    fn leaves_a_delay(self) -> bool {
        match self {
            Self::Expired | Self::Forced(_) => true,
            Self::Released | Self::Abandoned => false,
        }
    }
}

impl LockTable {
    /// Counts one event; the only way that the revision grows but for a raised floor.
    pub(crate) fn next_revision(&mut self) -> Revision {
        let Some(next) = self.state.head.revision.next() else {
            broken("I2: the revision reached 2^53 - 1: no token is left");
        };
        self.state.head.revision = next;
        next
    }

    /// Counts and tells one event of a resource.
    pub(crate) fn tell(
        &mut self,
        effects: &mut Effects,
        subject: (&ResourceName, &Owner),
        change: Change,
    ) -> Revision {
        let revision = self.next_revision();
        effects.resource_event((revision, self.now()), subject, change);
        revision
    }

    /// Makes the lease of a resource that is free. The request's record says afterwards that it is granted.
    pub(crate) fn begin_lease(
        &mut self,
        effects: &mut Effects,
        resource: &ResourceName,
        request: &RequestKey,
        terms: Terms,
        attempt: Attempt,
    ) -> Grant {
        if self.state.holdings.get(resource).is_some() {
            broken("I1: a grant of a resource that is held or closed");
        }
        let now = self.now();
        let change = Change::Granted { ttl_ms: terms.ttl.as_ms() };
        let token = self.tell(effects, (resource, &terms.owner), change).token();
        effects.mark(request, Some(terms.lease_id), terms.address);
        let hold_until = now.plus_ms(self.state.head.policy.total_hold_ms_max);
        let lease = Lease {
            request: request.clone(),
            token,
            granted_at: now,
            // A policy that changed while the request waited may allow less than its TTL.
            until: now.plus_ms(terms.ttl.as_ms()).min(hold_until),
            hold_until,
            sight: Sight::Meant { attempt, term: self.state.head.term },
            grace: Grace::Unused,
            terms,
        };
        let grant = lease.grant(now, Told::First);
        self.index.holdings.insert((lease.until, resource.clone()));
        self.index.by_lease_id.insert(grant.lease_id, request.text().clone());
        self.index.by_token.insert(token, request.text().clone());
        self.index.count_one(resource, Counted::Lease);
        self.state.holdings.insert_cow(resource.clone(), Arc::new(Holding::Held(lease)));
        grant
    }

    /// Gives the current lease of a resource, to whose request it was granted before, once more.
    pub(crate) fn grant_again(&mut self, resource: &ResourceName) -> Grant {
        let now = self.now();
        let Some(lease) = self.lease_mut(resource) else {
            broken("I5: a request is granted and its resource isn't held");
        };
        // An earlier call may have handed this grant out, and this one does: nobody can know any more that it
        // went unseen, so it is never taken back.
        lease.sight = Sight::Seen;
        lease.grant(now, Told::Again)
    }

    /// Ends the current lease of a resource that is held, and hands the resource on.
    pub(crate) fn end_lease(&mut self, effects: &mut Effects, resource: &ResourceName, end: End<'_>) {
        let holding = self.state.holdings.remove_cow(resource);
        let Some(Holding::Held(lease)) = holding.as_deref() else {
            broken("I5: a lease ends of a resource that isn't held")
        };
        self.index.holdings.remove(&(lease.until, resource.clone()));
        self.close_lease(effects, resource, lease, end);
    }

    /// What the end of a lease brings about, once it is in the table no more.
    pub(crate) fn close_lease(
        &mut self,
        effects: &mut Effects,
        resource: &ResourceName,
        lease: &Lease,
        end: End<'_>,
    ) {
        let now = self.now();
        self.index.count_one_less(resource, Counted::Lease);
        let token = lease.token;
        let change = match end {
            End::Released => Change::Released { token },
            End::Expired => Change::Expired { token },
            End::Forced(reason) => Change::Forced { token, reason: reason.clone() },
            End::Abandoned => Change::Abandoned { token },
        };
        self.tell(effects, (resource, &lease.terms.owner), change);
        effects.lasted(SpanOf::Lease(end.how()), lease.granted_at, now);
        let lease_id = lease.terms.lease_id;
        effects.mark(&lease.request, Some(lease_id), lease.terms.address);
        self.request_mut(&lease.request).state =
            RequestState::Ended { at: now, how: end.how(), token, lease_id };
        self.index.ended.insert((now, lease.request.text().clone()));

        let delay_ms = lease.terms.lock_delay.as_ms();
        if end.leaves_a_delay() && delay_ms > 0 {
            let until = now.plus_ms(delay_ms);
            self.state.holdings.insert_cow(resource.clone(), Arc::new(Holding::Closed { until }));
            self.index.holdings.insert((until, resource.clone()));
        } else {
            self.hand_off_free(effects, resource);
        }
    }

    /// Grants a free resource to the first attached waiter, if there is one.
    pub(crate) fn hand_off(&mut self, effects: &mut Effects, resource: &ResourceName) {
        if self.state.holdings.get(resource).is_some() {
            return;
        }
        self.hand_off_free(effects, resource);
    }

    /// The same of a resource that is known to be free.
    pub(crate) fn hand_off_free(&mut self, effects: &mut Effects, resource: &ResourceName) {
        #[cfg(kunci_plants)]
        if (crate::planted::is(crate::planted::Bug::WakeUpLost)
            || crate::planted::is(crate::planted::Bug::WakeUpLostUnseen))
            && self.state.head.revision.get().is_multiple_of(3)
        {
            return;
        }
        let Some(request) = self.index.head(resource).cloned() else { return };
        let Some(waiting) = self.leave_queue(&request) else {
            broken("I6: the head of a queue isn't waiting");
        };
        let Attachment::Attached { attempt, .. } = waiting.attachment else {
            broken("I6: the head of a queue is detached");
        };
        effects.lasted(SpanOf::Wait(WaitEnd::Granted), waiting.since, self.now());
        let grant = self.begin_lease(effects, resource, &request, waiting.terms, attempt);
        self.request_mut(&request).state = RequestState::Granted { token: grant.token };
        effects.answer(attempt, AcquireReply::Granted(grant), self.state.head.revision);
    }

    /// Takes a waiter out of its queue and returns what it waited with; its record is still to be changed.
    pub(crate) fn leave_queue(&mut self, request: &RequestKey) -> Option<Waiting> {
        let (resource, waiting) = match self.request(request)? {
            Request { resource, state: RequestState::Waiting(waiting), .. } => {
                (resource.clone(), (**waiting).clone())
            }
            Request { .. } => return None,
        };
        self.index.waits.remove(&(waiting.due(), waiting.place));
        self.index.dequeue(&resource, waiting.place);
        Some(waiting)
    }
}
