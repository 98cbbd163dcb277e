//! One lease as its holder counts it.
//!
//! Owns: what each event does to it. Never: sees another lease.

use super::{Failure, Granted, Renewal};
use crate::clock::Moment;
use crate::state::{Facts, Loss};
use crate::timing::Timing;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) timing: Timing,
    pub(super) facts: Facts,
    pub(super) is_on_its_way: bool,
    renew_every: Duration,
    renew_at: Moment,
    /// Tries that failed in a row.
    failed: u32,
    /// The moment of doubt has passed; see [`Self::turns_at`].
    is_doubted: bool,
}

impl Lease {
    pub(super) fn new(granted: &Granted) -> Self {
        let Granted { timing, sent_at, remaining, is_final, jitter } = *granted;
        // Up to a tenth earlier.
        let renew_every = timing.renew_every - timing.renew_every / 10_000 * jitter.min(1_000);
        let deadline = deadline(timing, sent_at, remaining);
        let facts = Facts {
            deadline,
            doubt_at: (!is_final).then(|| sent_at.plus(timing.doubt_after()).min(deadline)),
            failing: false,
            is_final,
            lost: None,
        };
        // A grant that is told again has less than its TTL left: then it is renewed sooner.
        let renew_at = sent_at.plus(renew_every.min(remaining / 3));
        Self { timing, facts, is_on_its_way: false, renew_every, renew_at, failed: 0, is_doubted: false }
    }

    /// When to send the next renewal.
    pub(super) fn renew_at(&self) -> Option<Moment> {
        let has_more = !self.is_on_its_way && !self.facts.is_final;
        has_more.then_some(self.renew_at)
    }

    /// When it changes by time alone.
    pub(super) fn turns_at(&self) -> Moment {
        match self.facts.doubt_at {
            Some(at) if !self.is_doubted => at,
            _ => self.facts.deadline,
        }
    }

    pub(super) fn time_passed(&mut self, now: Moment) {
        self.is_doubted = true;
        match self.facts.loss_at(now) {
            Some(loss) => self.facts.lost = Some(loss),
            None => self.facts.failing = !self.facts.is_final,
        }
    }

    pub(super) fn sent(&mut self) {
        self.is_on_its_way = true;
    }

    pub(super) fn told(&mut self, renewal: Renewal, now: Moment) {
        self.is_on_its_way = false;
        match renewal {
            // Lost is final, however good the news that comes too late.
            Renewal::Renewed { .. } if now >= self.facts.deadline => self.time_passed(now),
            Renewal::Renewed { sent_at, remaining, is_final } => self.renewed(sent_at, remaining, is_final),
            Renewal::Failed(failure) => self.failed(failure, now),
            Renewal::Ended(ending) => self.facts.lost = Some(Loss::Ended(ending)),
        }
    }

    fn failed(&mut self, failure: Failure, now: Moment) {
        self.failed = self.failed.saturating_add(1);
        let (Failure::NoAnswer { connections } | Failure::Refused { connections }) = failure;
        let is_round = self.failed.is_multiple_of(connections.max(1));
        // The next connection at once; a pause when every one has failed.
        let pauses = is_round || matches!(failure, Failure::Refused { .. });
        self.renew_at = if pauses { now.plus(self.timing.retry_after()) } else { now };
        self.facts.failing |= is_round;
    }

    fn renewed(&mut self, sent_at: Moment, remaining: Duration, is_final: bool) {
        // The server never shortens a lease, so an older promise stands beside a newer one.
        self.facts.deadline = self.facts.deadline.max(deadline(self.timing, sent_at, remaining));
        self.facts.is_final |= is_final;
        self.facts.failing = false;
        self.facts.doubt_at =
            (!self.facts.is_final).then(|| sent_at.plus(self.timing.doubt_after()).min(self.facts.deadline));
        self.renew_at = sent_at.plus(self.renew_every);
        (self.failed, self.is_doubted) = (0, false);
    }
}

/// Until when nobody else can be granted what was answered, exclusive.
fn deadline(timing: Timing, sent_at: Moment, remaining: Duration) -> Moment {
    // No lease has more than its TTL: a larger number is nonsense, and believing it would be dangerous.
    let believed = remaining.min(timing.ttl);
    sent_at.plus(believed.saturating_sub(timing.margin()))
}
