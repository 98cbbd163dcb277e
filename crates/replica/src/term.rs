//! The term in which this node leads, if it does: its clock, and whether requests are served in it.
//!
//! Owns: cluster time while this node leads, and the one word on how it stands. Never: decides who leads.

use crate::answered::Refusal;
use crate::clock::ClusterClock;
use crate::measures::Counter;
use kunci_types::ClusterTime;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How this node stands in its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It doesn't lead, or hasn't taken over yet.
    Away,
    /// It leads and serves.
    Serving,
    /// It leads and gives leadership away: nothing new is proposed, what is on its way is finished.
    HandingOver,
    /// It leads by name, but heard of no quorum for too long: it acknowledges nothing.
    WithoutQuorum,
}

/// The term in which this node leads, if it does.
#[derive(Debug)]
pub(crate) struct Term {
    clock: Mutex<Option<ClusterClock>>,
    phase: watch::Sender<Phase>,
    /// Entries of this term that are on their way. Counted before the phase is looked at, so that whoever
    /// changes the phase and then waits for zero has waited for all.
    in_flight: watch::Sender<usize>,
    /// Time that passed while this node led and cluster time didn't count, in µs.
    skipped_us: Counter,
}

/// An entry that is on its way, until this is dropped.
#[derive(Debug)]
pub(crate) struct InFlight {
    term: Arc<Term>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.term.in_flight.send_modify(|entries| *entries -= 1);
    }
}

impl Term {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            clock: Mutex::new(None),
            phase: watch::Sender::new(Phase::Away),
            in_flight: watch::Sender::new(0),
            skipped_us: Counter::default(),
        })
    }

    /// Cluster time now; `None` when this node doesn't lead.
    pub(crate) fn now(&self) -> Option<ClusterTime> {
        let mut clock = self.clock();
        let clock = clock.as_mut()?;
        let now = clock.sample();
        self.skipped_us.add(u64::try_from(clock.take_skipped().as_micros()).unwrap_or(u64::MAX));
        Some(now)
    }

    /// Time that passed while this node led and cluster time didn't count, in µs.
    pub(crate) fn skipped_us(&self) -> u64 {
        self.skipped_us.get()
    }

    /// Entries that are on their way.
    pub(crate) fn in_flight(&self) -> usize {
        *self.in_flight.borrow()
    }

    /// Begins to propose an entry, with its time; `None` unless this node serves.
    pub(crate) fn propose(self: &Arc<Self>) -> Option<(InFlight, ClusterTime)> {
        self.in_flight.send_modify(|entries| *entries += 1);
        let in_flight = InFlight { term: Arc::clone(self) };
        if self.phase() != Phase::Serving {
            return None;
        }
        Some((in_flight, self.now()?))
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Fine while this node serves.
    pub(crate) fn check_served(&self) -> Result<(), Refusal> {
        match self.phase() {
            Phase::Serving => Ok(()),
            Phase::Away | Phase::HandingOver => Err(Refusal::NoLeader),
            Phase::WithoutQuorum => Err(Refusal::NoQuorum),
        }
    }

    /// Why this node couldn't go on with something in its term. One that serves again meanwhile has lost it all the same.
    pub(crate) fn refusal(&self) -> Refusal {
        self.check_served().err().unwrap_or(Refusal::NoLeader)
    }

    /// Begins to serve, at the log's time.
    pub(crate) fn begin(&self, start: ClusterTime) {
        *self.clock() = Some(ClusterClock::start(start));
        self.phase.send_replace(Phase::Serving);
    }

    /// Ends serving, as `Away` or `WithoutQuorum`.
    pub(crate) fn end(&self, phase: Phase) {
        self.phase.send_if_modified(|now| std::mem::replace(now, phase) != phase);
        *self.clock() = None;
    }

    /// Stops proposing, to hand over. False unless this node serves.
    pub(crate) fn pause(&self) -> bool {
        self.go(Phase::Serving, Phase::HandingOver)
    }

    /// Goes on after a hand-over that failed. False when the term has ended meanwhile.
    pub(crate) fn resume(&self) -> bool {
        self.go(Phase::HandingOver, Phase::Serving)
    }

    fn go(&self, from: Phase, to: Phase) -> bool {
        self.phase.send_if_modified(|phase| {
            let goes = *phase == from;
            if goes {
                *phase = to;
            }
            goes
        })
    }

    /// Waits until no entry is on its way.
    pub(crate) async fn idle(&self) {
        let mut in_flight = self.in_flight.subscribe();
        // The sender lives in `self`.
        drop(in_flight.wait_for(|entries| *entries == 0).await);
    }

    /// Waits until this node neither serves nor hands over: what is on its way then may take effect or not.
    pub(crate) async fn over(&self) {
        let mut phase = self.phase.subscribe();
        drop(phase.wait_for(|phase| matches!(phase, Phase::Away | Phase::WithoutQuorum)).await);
    }

    fn clock(&self) -> MutexGuard<'_, Option<ClusterClock>> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_hand_over_waits_for_what_is_on_its_way_and_lets_nothing_new_in() {
        let term = Term::new();
        assert!(term.propose().is_none());
        term.begin(ClusterTime::START);
        let (on_its_way, _) = term.propose().unwrap();

        assert!(term.pause());
        assert!(term.propose().is_none());
        assert_eq!(term.check_served(), Err(Refusal::NoLeader));
        let waited = tokio::time::timeout(std::time::Duration::from_secs(1), term.idle()).await;
        assert!(waited.is_err(), "an entry was on its way");

        drop(on_its_way);
        term.idle().await;
        assert!(term.resume());
        assert!(term.propose().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_term_that_ended_is_not_resumed() {
        let term = Term::new();
        term.begin(ClusterTime::START);
        assert!(term.pause());
        term.end(Phase::Away);
        assert!(!term.resume());
        term.over().await;
        assert_eq!(term.now(), None);
    }
}
