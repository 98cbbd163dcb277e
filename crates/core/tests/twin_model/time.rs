//! What time brings about in the naive table.

use super::{Call, State, Twin, Waiting};
use kunci_core::RequestKey;
use kunci_core::event::Change;
use kunci_core::reply::{AcquireRefusal, AcquireReply, LeaseEnd, Told};
use kunci_types::{ResourceName, Revision};

/// Why a wait ends without a grant.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Over {
    TimedOut,
    Cancelled,
    Dropped,
}

impl Twin {
    pub(super) fn pass_time(&mut self) {
        if self.presence_until.is_some_and(|until| until <= self.now) {
            self.presence_until = None;
            for request in self.by_due(u64::MAX) {
                let stayed_away = match self.waiting_of(&request).call {
                    Call::Open { term, .. } => term < self.term,
                    Call::Away { .. } => false,
                };
                if stayed_away {
                    self.detach_waiter(&request);
                }
            }
        }
        for request in self.by_due(self.now) {
            let timed_out = self.waiting_of(&request).until <= self.now;
            self.wait_over(&request, if timed_out { Over::TimedOut } else { Over::Dropped });
        }
        self.end_what_is_due();
        let forget_at = |at: u64| at + self.policy.retry_window_ms;
        self.records.retain(|record| match record.state {
            State::Waiting(_) | State::Granted => true,
            State::Ended { at, .. } | State::TimedOut { at } | State::Cancelled { at } => {
                forget_at(at) > self.now
            }
        });
    }

    /// Leases and lock-delays that end by now, first by time, then by name.
    fn end_what_is_due(&mut self) {
        loop {
            let ends = self.leases.iter().map(|lease| (lease.until, lease.resource.clone()));
            let opens = self.closed.iter().map(|(name, until)| (*until, name.clone()));
            let Some((at, resource)) = ends.chain(opens).min() else { return };
            if at > self.now {
                return;
            }
            if self.lease(&resource).is_some() {
                self.end(&resource, LeaseEnd::Expired, |token| Change::Expired { token: fence(token) });
            } else {
                self.closed.retain(|(name, _)| *name != resource);
                self.hand_on(&resource);
            }
        }
    }

    /// Requests whose wait must be looked at by `at`, first by when, then by place.
    fn by_due(&self, at: u64) -> Vec<RequestKey> {
        let due = |waiting: &Waiting| match waiting.call {
            Call::Open { .. } => waiting.until,
            Call::Away { until } => until.min(waiting.until),
        };
        let mut requests: Vec<_> = self
            .waiting()
            .map(|(record, waiting)| (due(waiting), waiting.place, record.request.clone()))
            .filter(|(due, _, _)| *due <= at)
            .collect();
        requests.sort();
        requests.into_iter().map(|(_, _, request)| request).collect()
    }

    fn waiting_of(&mut self, request: &RequestKey) -> &mut Waiting {
        match &mut self.record(request).state {
            State::Waiting(waiting) => waiting,
            _ => panic!("this request doesn't wait"),
        }
    }

    pub(super) fn set_call(&mut self, request: &RequestKey, call: Call) {
        self.waiting_of(request).call = call;
    }

    pub(super) fn detach_waiter(&mut self, request: &RequestKey) {
        let until = self.now + self.policy.waiter_grace_ms;
        self.set_call(request, Call::Away { until });
        if self.waiting_of(request).terms.server_made {
            self.wait_over(request, Over::Dropped);
        }
    }

    pub(super) fn make_returnable(&mut self, request: &RequestKey) {
        self.waiting_of(request).terms.server_made = false;
    }

    pub(super) fn wait_over(&mut self, request: &RequestKey, over: Over) {
        let at = self.now;
        let waiting = self.waiting_of(request).clone();
        let resource: ResourceName = self.record(request).resource.clone();
        let (change, state, refusal) = match over {
            Over::TimedOut => {
                (Change::TimedOut, State::TimedOut { at }, AcquireRefusal::TimedOut(Told::First))
            }
            Over::Cancelled => {
                (Change::Cancelled, State::Cancelled { at }, AcquireRefusal::Cancelled(Told::First))
            }
            Over::Dropped => {
                (Change::Dropped, State::Cancelled { at }, AcquireRefusal::Cancelled(Told::First))
            }
        };
        self.happened(&resource, &waiting.terms.owner, change);
        self.record(request).state = state;
        match waiting.call {
            Call::Open { attempt, .. } => {
                self.answers.push((attempt, AcquireReply::Refused(refusal), self.revision));
            }
            // Nobody was ever told the request id, so nobody can come back and ask.
            Call::Away { .. } if waiting.terms.server_made => {
                self.records.retain(|record| record.request != *request);
            }
            Call::Away { .. } => {}
        }
    }
}

pub(super) fn fence(token: u64) -> kunci_types::FencingToken {
    Revision::new(token).unwrap().token()
}
