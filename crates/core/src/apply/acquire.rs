//! Acquire: take a resource, queue for it, or come back to what the same request got before.

use crate::command::{Acquire, RequestIdFrom};
use crate::effects::Effects;
use crate::event::Change;
use crate::invariants::broken;
use crate::lease::Holding;
use crate::reply::{AcquireRefusal, AcquireReply, OverLimit, Told};
use crate::request::{
    Arguments, Attachment, Closed, Request, RequestKey, RequestState, Returnable, Terms, Waiting,
    fingerprint_of,
};
use crate::table::LockTable;
use alloc::boxed::Box;
use kunci_types::{ClientAddress, OutOfPolicy, Ttl, Wait};

impl LockTable {
    pub(super) fn acquire(
        &mut self,
        effects: &mut Effects,
        acquire: &Acquire,
        address: Option<ClientAddress>,
    ) -> AcquireReply {
        let key = RequestKey::new(&acquire.caller, &acquire.request_id);
        let reply = match self.request(&key) {
            Some(record) if !record.is_repeated_by(acquire) => {
                AcquireReply::Refused(AcquireRefusal::RequestIdReused)
            }
            Some(_) => self.acquire_again(effects, &key, acquire, address),
            None => self.acquire_first(effects, &key, acquire, address),
        };
        self.check_touched(&acquire.resource);
        reply
    }

    fn acquire_again(
        &mut self,
        effects: &mut Effects,
        key: &RequestKey,
        acquire: &Acquire,
        address: Option<ClientAddress>,
    ) -> AcquireReply {
        match &mut self.request_mut(key).state {
            RequestState::Waiting(waiting) => {
                waiting.terms.address = address;
                self.come_back(effects, key, acquire)
            }
            RequestState::Granted { .. } => AcquireReply::Granted(self.grant_again(&acquire.resource)),
            RequestState::Ended { how, token, .. } => {
                AcquireReply::Refused(AcquireRefusal::LeaseEnded { how: *how, token: *token })
            }
            RequestState::Closed { how: Closed::TimedOut, .. } => {
                AcquireReply::Refused(AcquireRefusal::TimedOut(Told::Again))
            }
            RequestState::Closed { how: Closed::Cancelled, .. } => {
                AcquireReply::Refused(AcquireRefusal::Cancelled(Told::Again))
            }
        }
    }

    /// A waiter's newest call takes its place; an older call of it is told so.
    fn come_back(&mut self, effects: &mut Effects, key: &RequestKey, acquire: &Acquire) -> AcquireReply {
        let older = self.waiting(key).and_then(Waiting::attempt).filter(|older| *older != acquire.attempt);
        if let Some(older) = older {
            let refusal = AcquireReply::Refused(AcquireRefusal::Superseded);
            effects.answer(older, refusal, self.state.head.revision);
        }
        let term = self.state.head.term;
        self.set_attachment(key, Attachment::Attached { attempt: acquire.attempt, term });
        // The resource may have become free while this waiter, and every other, was detached.
        self.hand_off(effects, &acquire.resource);
        self.outcome_now(effects, acquire)
    }

    /// If the hand-off just now served this very call, its grant is the reply instead of a later answer.
    fn outcome_now(&self, effects: &mut Effects, acquire: &Acquire) -> AcquireReply {
        match effects.answers.pop_if(|answer| answer.attempt == acquire.attempt) {
            Some(answer) => answer.reply.value,
            None => AcquireReply::Queued,
        }
    }

    fn acquire_first(
        &mut self,
        effects: &mut Effects,
        key: &RequestKey,
        acquire: &Acquire,
        address: Option<ClientAddress>,
    ) -> AcquireReply {
        let ttl = acquire.ttl.unwrap_or(Ttl::from_ms(self.state.head.policy.ttl_ms_default));
        if let Err(out_of_policy) = self.check_policy(acquire, ttl) {
            return AcquireReply::Refused(AcquireRefusal::OutOfPolicy(out_of_policy));
        }
        let terms = Terms {
            owner: acquire.owner.clone(),
            ttl,
            lock_delay: acquire.lock_delay,
            metadata: acquire.metadata.clone(),
            lease_id: acquire.lease_id,
            returnable: match acquire.request_id_from {
                RequestIdFrom::Client => Returnable::Yes,
                RequestIdFrom::Server => Returnable::No,
            },
            address,
        };
        let is_free = self.state.holdings.get(&acquire.resource).is_none();
        match acquire.wait {
            _ if is_free => self.take(effects, key, acquire, terms),
            Wait::Try => AcquireReply::Refused(self.refuse_try(acquire)),
            Wait::UpToMs(wait_ms) => self.join_queue(effects, key, acquire, terms, wait_ms),
        }
    }

    fn check_policy(&self, acquire: &Acquire, ttl: Ttl) -> Result<(), OutOfPolicy> {
        let policy = &self.state.head.policy;
        policy.check_ttl(ttl)?;
        policy.check_wait(acquire.wait)?;
        policy.check_lock_delay(acquire.lock_delay)
    }

    fn take(
        &mut self,
        effects: &mut Effects,
        key: &RequestKey,
        acquire: &Acquire,
        terms: Terms,
    ) -> AcquireReply {
        if let Some(limit) = self.lease_limit(acquire).or_else(|| self.outcome_limit()) {
            return AcquireReply::Refused(AcquireRefusal::OverLimit(limit));
        }
        let grant = self.begin_lease(effects, &acquire.resource, key, terms, acquire.attempt);
        let state = RequestState::Granted { token: grant.token };
        self.remember(key, acquire, state);
        AcquireReply::Granted(grant)
    }

    fn join_queue(
        &mut self,
        effects: &mut Effects,
        key: &RequestKey,
        acquire: &Acquire,
        terms: Terms,
        wait_ms: u64,
    ) -> AcquireReply {
        if let Some(limit) = self.waiter_limit(acquire).or_else(|| self.outcome_limit()) {
            return AcquireReply::Refused(AcquireRefusal::OverLimit(limit));
        }
        let now = self.now();
        let place = self.tell(effects, (&acquire.resource, &acquire.owner), Change::Queued);
        let waiting = Waiting {
            terms,
            place,
            since: now,
            until: now.plus_ms(wait_ms),
            attachment: Attachment::Attached { attempt: acquire.attempt, term: self.state.head.term },
        };
        self.index.enqueue(&acquire.resource, place, key.clone());
        self.index.attach(&acquire.resource, place);
        self.index.waits.insert((waiting.due(), place), key.clone());
        self.remember(key, acquire, RequestState::Waiting(Box::new(waiting)));
        AcquireReply::Queued
    }

    fn remember(&mut self, key: &RequestKey, acquire: &Acquire, state: RequestState) {
        let arguments = Arguments::Seen(fingerprint_of(acquire));
        let request = Request { resource: acquire.resource.clone(), arguments, state };
        self.insert_request(key.clone(), request);
    }

    fn refuse_try(&self, acquire: &Acquire) -> AcquireRefusal {
        let now = self.now();
        let queue_length = self.index.queue_length(&acquire.resource);
        match self.state.holdings.get(&acquire.resource).map(|holding| &**holding) {
            Some(Holding::Held(lease)) => AcquireRefusal::Held(lease.held_by(now, queue_length)),
            Some(Holding::Closed { until }) => {
                AcquireRefusal::LockDelay { remaining_ms: until.ms_since(now) }
            }
            None => broken("I3: a try is refused on a free resource"),
        }
    }

    fn lease_limit(&self, acquire: &Acquire) -> Option<OverLimit> {
        let policy = &self.state.head.policy;
        let usage = self.index.usage(&acquire.resource);
        if usage.leases >= policy.leases_per_namespace_max {
            return Some(OverLimit::LeasesOfNamespace { max: policy.leases_per_namespace_max });
        }
        (self.index.total.leases >= policy.leases_max).then_some(OverLimit::Leases { max: policy.leases_max })
    }

    fn waiter_limit(&self, acquire: &Acquire) -> Option<OverLimit> {
        let policy = &self.state.head.policy;
        if self.index.queue_length(&acquire.resource) >= policy.waiters_per_resource_max {
            return Some(OverLimit::WaitersOfResource { max: policy.waiters_per_resource_max });
        }
        let usage = self.index.usage(&acquire.resource);
        if usage.waiters >= policy.waiters_per_namespace_max {
            return Some(OverLimit::WaitersOfNamespace { max: policy.waiters_per_namespace_max });
        }
        (self.index.total.waiters >= policy.waiters_max)
            .then_some(OverLimit::Waiters { max: policy.waiters_max })
    }

    pub(super) fn outcome_limit(&self) -> Option<OverLimit> {
        let max = self.state.head.policy.outcomes_max;
        (self.state.requests.len() as u64 >= max).then_some(OverLimit::Outcomes { max })
    }
}
