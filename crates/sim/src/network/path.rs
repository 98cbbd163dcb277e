//! The ways between hosts, each for one direction.
//!
//! Owns: how long a way takes, what is lost on it, and since when it is cut. Never: knows what goes over it.

use crate::randomness::Seeded;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// A host, by the order in which they were plugged in first.
pub(super) type Host = usize;
/// Two hosts, from and to.
pub(super) type Way = (Host, Host);

/// The first repetition of what was lost; then twice as long each time.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// The longest time from one repetition to the next.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(3);

/// How good a way is.
#[derive(Clone, Copy, Debug)]
pub struct Quality {
    /// The least time that anything takes.
    pub delay: Duration,
    /// At most so much is added, evenly.
    pub jitter: Duration,
    /// What is lost and has to be sent again, in millionths.
    pub loss_ppm: u32,
}

impl Quality {
    /// When something arrives that is sent now.
    pub(super) fn arrival(&self, now: Instant, random: &mut Seeded) -> Instant {
        let jitter_us = u64::try_from(self.jitter.as_micros()).unwrap_or(u64::MAX);
        let mut arrival = now + self.delay + Duration::from_micros(random.below(jitter_us));
        let mut again_after = AGAIN_AFTER;
        while random.hits_ppm(self.loss_ppm.min(900_000)) {
            arrival += again_after;
            again_after = (again_after * 2).min(AGAIN_AFTER_MAX);
        }
        arrival
    }
}

/// Every way that isn't as usual.
pub(super) struct Paths {
    usual: Quality,
    other: BTreeMap<Way, Quality>,
    cuts: BTreeMap<Way, Instant>,
}

impl Paths {
    pub(super) fn new(usual: Quality) -> Self {
        Self { usual, other: BTreeMap::new(), cuts: BTreeMap::new() }
    }

    pub(super) const fn usual(&self) -> Quality {
        self.usual
    }

    pub(super) fn quality(&self, from: Host, to: Host) -> Quality {
        if self.other.is_empty() {
            return self.usual;
        }
        self.other.get(&(from, to)).copied().unwrap_or(self.usual)
    }

    pub(super) fn set_quality(&mut self, from: Host, to: Host, quality: Quality) {
        self.other.insert((from, to), quality);
    }

    /// Whether it wasn't cut before.
    pub(super) fn cut(&mut self, from: Host, to: Host, now: Instant) -> bool {
        if self.is_cut(from, to) {
            return false;
        }
        self.cuts.insert((from, to), now);
        true
    }

    /// How long it was cut, if it was.
    pub(super) fn mend(&mut self, from: Host, to: Host, now: Instant) -> Option<Duration> {
        self.cuts.remove(&(from, to)).map(|since| now - since)
    }

    pub(super) fn usual_again(&mut self) {
        self.other.clear();
    }

    pub(super) fn cuts(&self) -> impl Iterator<Item = &Way> {
        self.cuts.keys()
    }

    pub(super) fn is_cut(&self, from: Host, to: Host) -> bool {
        self.cut_since(from, to).is_some()
    }

    pub(super) fn cut_since(&self, from: Host, to: Host) -> Option<Instant> {
        if self.cuts.is_empty() {
            return None;
        }
        self.cuts.get(&(from, to)).copied()
    }
}

/// How long after the mending of a way what had waited for it is sent again: repetitions had become rare.
pub(super) fn sent_again_after(cut_for: Duration, random: &mut Seeded) -> Duration {
    let most = cut_for.min(AGAIN_AFTER_MAX);
    Duration::from_micros(random.below(u64::try_from(most.as_micros()).unwrap_or(0)))
}
