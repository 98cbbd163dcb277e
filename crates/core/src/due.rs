//! What time alone brings about.
//!
//! Owns: the order of it: waits that are over, then leases and lock-delays, each by (deadline, order), so that
//! a lease is never granted to a request whose wait ended at the same instant.

use crate::effects::Effects;
use crate::event::Change;
use crate::grant::End;
use crate::invariants::broken;
use crate::lease::Holding;
use crate::reply::{self, AcquireRefusal, AcquireReply, SpanOf, Told};
use crate::request::{Attachment, Closed, RequestKey, RequestState, Returnable, Waiting};
use crate::table::LockTable;
use alloc::vec::Vec;

impl LockTable {
    pub(crate) fn apply_due(&mut self, effects: &mut Effects) {
        self.end_presence(effects);
        self.end_waits(effects);
        self.end_holdings(effects);
        self.forget_ended();
    }

    /// Detaches the waiters of earlier terms that have not come back in time.
    fn end_presence(&mut self, effects: &mut Effects) {
        let now = self.now();
        if self.state.head.presence_until.is_none_or(|until| until > now) {
            return;
        }
        self.state.head.presence_until = None;
        let term = self.state.head.term;
        let requests: Vec<RequestKey> = self.index.waits.values().cloned().collect();
        for request in requests {
            let stayed_away = match self.waiting(&request).map(|waiting| waiting.attachment) {
                Some(Attachment::Attached { term: opened_in, .. }) => opened_in < term,
                Some(Attachment::Detached { .. }) | None => false,
            };
            if stayed_away {
                effects.step();
                self.detach_waiter(effects, &request);
            }
        }
    }

    fn end_waits(&mut self, effects: &mut Effects) {
        let now = self.now();
        while let Some(((at, _), request)) = self.index.waits.first_key_value() {
            if *at > now {
                break;
            }
            let request = request.clone();
            effects.step();
            let end = match self.waiting(&request) {
                Some(waiting) if waiting.until <= now => WaitEnd::TimedOut,
                Some(_) => WaitEnd::Dropped,
                None => broken("I6: a wait ends of a request that doesn't wait"),
            };
            self.end_wait(effects, &request, end);
        }
    }

    fn end_holdings(&mut self, effects: &mut Effects) {
        let now = self.now();
        while self.index.holdings.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, resource)) = self.index.holdings.pop_first() else { break };
            effects.step();
            match self.state.holdings.remove_cow(&resource).as_deref() {
                Some(Holding::Held(lease)) => self.close_lease(effects, &resource, lease, End::Expired),
                Some(Holding::Closed { .. }) => self.hand_off_free(effects, &resource),
                None => broken("I4: a deadline of a resource that is free"),
            }
            self.check_touched(&resource);
        }
    }

    fn forget_ended(&mut self) {
        let now = self.now();
        let window_ms = self.state.head.policy.retry_window_ms;
        while self.index.ended.first().is_some_and(|(at, _)| at.plus_ms(window_ms) <= now) {
            let Some((_, request)) = self.index.ended.pop_first() else { break };
            let forgotten = self.state.requests.remove(&request.key());
            if let Some(RequestState::Ended { token, lease_id, .. }) =
                forgotten.map(|record| record.state.clone())
            {
                self.index.by_lease_id.remove(&lease_id);
                self.index.by_token.remove(&token);
            }
        }
    }
}

/// Why a wait ends without a grant.
#[derive(Clone, Copy)]
pub(crate) enum WaitEnd {
    TimedOut,
    Cancelled,
    Dropped,
}

impl WaitEnd {
    fn told(self) -> reply::WaitEnd {
        match self {
            Self::TimedOut => reply::WaitEnd::TimedOut,
            Self::Cancelled => reply::WaitEnd::Cancelled,
            Self::Dropped => reply::WaitEnd::Dropped,
        }
    }
}

impl LockTable {
    pub(crate) fn waiting(&self, request: &RequestKey) -> Option<&Waiting> {
        match &self.request(request)?.state {
            RequestState::Waiting(waiting) => Some(waiting),
            RequestState::Granted { .. } | RequestState::Ended { .. } | RequestState::Closed { .. } => None,
        }
    }

    /// Takes a waiter out of its queue without a grant, remembers that, and tells its open call.
    pub(crate) fn end_wait(&mut self, effects: &mut Effects, request: &RequestKey, end: WaitEnd) {
        let now = self.now();
        let Some(waiting) = self.leave_queue(request) else { return };
        let resource = self.request_mut(request).resource.clone();
        let (change, closed, refusal) = match end {
            WaitEnd::TimedOut => (Change::TimedOut, Closed::TimedOut, AcquireRefusal::TimedOut(Told::First)),
            WaitEnd::Cancelled => {
                (Change::Cancelled, Closed::Cancelled, AcquireRefusal::Cancelled(Told::First))
            }
            WaitEnd::Dropped => (Change::Dropped, Closed::Cancelled, AcquireRefusal::Cancelled(Told::First)),
        };
        let revision = self.tell(effects, (&resource, &waiting.terms.owner), change);
        effects.mark(request, None, waiting.terms.address);
        effects.lasted(SpanOf::Wait(end.told()), waiting.since, now);
        let nobody_returns = match waiting.terms.returnable {
            Returnable::No => waiting.attempt().is_none(),
            Returnable::Yes => false,
        };
        if nobody_returns {
            self.state.requests.remove(request);
        } else {
            self.request_mut(request).state = RequestState::Closed { at: now, how: closed };
            self.index.ended.insert((now, request.text().clone()));
        }
        if let Some(attempt) = waiting.attempt() {
            effects.answer(attempt, AcquireReply::Refused(refusal), revision);
        }
        self.check_waiters(&resource);
    }

    /// Marks a waiter as detached: it keeps its place for the waiter grace and is passed over meanwhile. One
    /// that nobody could come back to leaves the queue at once.
    pub(crate) fn detach_waiter(&mut self, effects: &mut Effects, request: &RequestKey) {
        let until = self.now().plus_ms(self.state.head.policy.waiter_grace_ms);
        self.set_attachment(request, Attachment::Detached { until });
        if self.waiting(request).is_some_and(|waiting| waiting.terms.returnable == Returnable::No) {
            self.end_wait(effects, request, WaitEnd::Dropped);
        }
    }

    pub(crate) fn set_attachment(&mut self, request: &RequestKey, attachment: Attachment) {
        let record = self.request_mut(request);
        let RequestState::Waiting(waiting) = &mut record.state else { return };
        let (due_before, place) = (waiting.due(), waiting.place);
        waiting.attachment = attachment;
        let due = waiting.due();
        let resource = record.resource.clone();
        if due != due_before {
            self.index.waits.remove(&(due_before, place));
            self.index.waits.insert((due, place), request.clone());
        }
        match attachment {
            Attachment::Attached { .. } => self.index.attach(&resource, place),
            Attachment::Detached { .. } => self.index.detach(&resource, place),
        }
    }
}
