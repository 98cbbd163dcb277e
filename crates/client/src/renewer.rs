//! When to renew which lease, and what is known of each: decisions without a clock or a network.
//!
//! Owns: every deadline of a client's leases, the order of renewals, the way from held to lost. Never: reads the time
//! or sends anything; each question brings its time along, and each answer says what to send and what changed.

mod lease;

use crate::clock::Moment;
use crate::state::{Ending, Facts, Loss};
use crate::timing::Timing;
use lease::Lease;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Names a lease within one client, for its life.
pub(crate) type Key = u64;

/// Renewals that may be on their way at once. A connection carries 4,096 requests at most.
pub(crate) const ON_THEIR_WAY_MAX: usize = 1_024;

/// A lease that was granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    pub(crate) timing: Timing,
    /// From before the request was sent.
    pub(crate) sent_at: Moment,
    /// As answered.
    pub(crate) remaining: Duration,
    /// As answered: no renewal extends it.
    pub(crate) is_final: bool,
    /// 0 to 1,000: leases that began together aren't renewed together.
    pub(crate) jitter: u32,
}

impl Granted {
    /// What is known of it at first.
    pub(crate) fn facts(&self) -> Facts {
        Lease::new(self).facts
    }
}

/// What came of one try to renew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// The lease lasts `remaining` from `sent_at`.
    Renewed { sent_at: Moment, remaining: Duration, is_final: bool },
    /// Nothing is known.
    Failed(Failure),
    /// It has ended.
    Ended(Ending),
}

/// Why nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// One connection gave no answer. There are so many in all.
    NoAnswer { connections: u32 },
    /// A server said that it can't decide now. Asking the others at once would only add to its trouble.
    Refused { connections: u32 },
}

/// What to do now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Send a renewal for each, in this order; tell each result with [`Renewer::told`].
    pub(crate) renew: Vec<Key>,
    /// Leases of which something else is known than before.
    pub(crate) changed: Vec<(Key, Facts)>,
}

/// All leases of one client.
#[derive(Debug, Default)]
pub(crate) struct Renewer {
    leases: BTreeMap<Key, Lease>,
    /// Each lease by when it is to be renewed next.
    renewals: BTreeSet<(Moment, Key)>,
    /// Each lease by when it comes to be in doubt or lost.
    turns: BTreeSet<(Moment, Key)>,
    on_their_way: usize,
}

impl Renewer {
    /// Begins to keep a lease, and says what is known of it.
    pub(crate) fn keep(&mut self, key: Key, granted: &Granted) -> Facts {
        let lease = Lease::new(granted);
        let facts = lease.facts;
        self.put(key, lease);
        facts
    }

    /// Stops to keep a lease: it is released, or its holder has gone.
    pub(crate) fn forget(&mut self, key: Key) {
        if let Some(lease) = self.take(key)
            && lease.is_on_its_way
        {
            self.on_their_way -= 1;
        }
    }

    /// When to ask [`Self::due`] again; `None` while there is nothing to wait for.
    pub(crate) fn wake_at(&self) -> Option<Moment> {
        let renewal = self.renewals.first().filter(|_| self.on_their_way < ON_THEIR_WAY_MAX);
        let turn = self.turns.first();
        renewal.into_iter().chain(turn).map(|(at, _)| *at).min()
    }

    /// What is due at `now`. Each renewal and each change is said once.
    pub(crate) fn due(&mut self, now: Moment) -> Due {
        let mut due = Due::default();
        while let Some((at, key)) = self.turns.first().copied()
            && at <= now
        {
            self.change(key, &mut due.changed, |lease| lease.time_passed(now));
        }
        let mut ready: Vec<(Moment, Key)> =
            self.near(now).filter_map(|key| Some((self.leases.get(&key)?.facts.deadline, key))).collect();
        // Nearest deadline first: who would be lost next is renewed next.
        ready.sort_unstable();
        ready.truncate(ON_THEIR_WAY_MAX.saturating_sub(self.on_their_way));
        for (_, key) in &ready {
            self.change(*key, &mut due.changed, Lease::sent);
            self.on_their_way += 1;
        }
        due.renew = ready.into_iter().map(|(_, key)| key).collect();
        due
    }

    /// Takes in what came of a renewal, and says what is known now, if that is new.
    pub(crate) fn told(&mut self, key: Key, renewal: Renewal, now: Moment) -> Option<Facts> {
        // An answer for a lease that isn't kept any more changes nothing: it can't bring a renewal back.
        if !self.leases.get(&key).is_some_and(|lease| lease.is_on_its_way) {
            return None;
        }
        self.on_their_way -= 1;
        let mut changed = Vec::new();
        self.change(key, &mut changed, |lease| lease.told(renewal, now));
        changed.pop().map(|(_, facts)| facts)
    }

    /// Those whose renewal is due, and those for which it would be so soon: one wake-up, one write for all of them.
    fn near(&self, now: Moment) -> impl Iterator<Item = Key> {
        let is_due = self.renewals.first().is_some_and(|(at, _)| *at <= now);
        let until = now.plus(TOGETHER_MAX);
        self.renewals
            .iter()
            .take_while(move |(at, _)| is_due && *at <= until)
            .filter(move |(at, key)| {
                let together = |lease: &Lease| TOGETHER_MAX.min(lease.timing.renew_every / 20);
                self.leases.get(key).is_some_and(|lease| at.since(now) <= together(lease))
            })
            .map(|(_, key)| *key)
    }

    fn change(&mut self, key: Key, changed: &mut Vec<(Key, Facts)>, change: impl FnOnce(&mut Lease)) {
        let Some(mut lease) = self.take(key) else { return };
        let before = lease.facts;
        change(&mut lease);
        if lease.facts != before {
            changed.push((key, lease.facts));
        }
        if lease.facts.lost.is_none() {
            self.put(key, lease);
        } else if lease.is_on_its_way {
            // Lost while a renewal was out: its answer has nobody to change any more.
            self.on_their_way -= 1;
        }
    }

    fn take(&mut self, key: Key) -> Option<Lease> {
        let lease = self.leases.remove(&key)?;
        if let Some(at) = lease.renew_at() {
            self.renewals.remove(&(at, key));
        }
        self.turns.remove(&(lease.turns_at(), key));
        Some(lease)
    }

    fn put(&mut self, key: Key, lease: Lease) {
        if let Some(at) = lease.renew_at() {
            self.renewals.insert((at, key));
        }
        self.turns.insert((lease.turns_at(), key));
        self.leases.insert(key, lease);
    }

    /// Nobody will renew anything any more: every lease counts as lost.
    pub(crate) fn give_up(&mut self) -> Vec<(Key, Facts)> {
        let given_up = std::mem::take(self);
        let lost = |(key, lease): (Key, Lease)| (key, Facts { lost: Some(Loss::ClientGone), ..lease.facts });
        given_up.leases.into_iter().map(lost).collect()
    }
}

/// Renewals this near to each other go together.
const TOGETHER_MAX: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests;
