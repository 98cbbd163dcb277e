//! How everybody is: what members said of themselves lately.
//!
//! Owns: telling the leader once a second how this node is, and remembering what was told here. Never: decides who
//! leads or votes; a word here may be a second old.

use crate::lead::Lead;
use crate::pulse::{Census, Pulse};
use crate::seat::Seat;
use kunci_core::FEATURE_LEVEL;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// From one pulse to the next.
const EVERY: Duration = Duration::from_secs(1);
/// How long a member may take to answer one.
const WITHIN: Duration = Duration::from_millis(700);
/// A member that wasn't heard of for this long isn't counted on.
const FRESH: Duration = Duration::from_secs(3);

/// What members said of themselves lately.
#[derive(Debug, Default)]
pub(crate) struct Vitals {
    known: Mutex<Known>,
    /// Whether the disks of so many voters are nearly full that the rest is no quorum. Each request asks.
    are_low: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    /// What each told this node.
    pulses: BTreeMap<u64, (Pulse, Instant)>,
    /// What the leader told this node.
    census: Option<(Census, Instant)>,
}

impl Vitals {
    /// Takes what a member says of itself.
    pub(crate) fn note(&self, from: u64, pulse: Pulse) {
        self.known().pulses.insert(from, (pulse, kunci_process::now()));
    }

    /// What a member told this node lately.
    pub(crate) fn lately(&self, node_id: u64) -> Option<Pulse> {
        let known = self.known();
        known.pulses.get(&node_id).filter(|(_, at)| is_fresh(*at)).map(|(pulse, _)| pulse.clone())
    }

    /// What every member told this node lately.
    pub(crate) fn all_lately(&self) -> BTreeMap<u64, Pulse> {
        let mut known = self.known();
        // A member that was removed ages and goes.
        known.pulses.retain(|_, (_, at)| is_fresh(*at));
        known.pulses.iter().map(|(id, (pulse, _))| (*id, pulse.clone())).collect()
    }

    /// What the leader told this node lately of each member.
    pub(crate) fn told(&self) -> BTreeMap<u64, Pulse> {
        let known = self.known();
        known
            .census
            .as_ref()
            .filter(|(_, at)| is_fresh(*at))
            .map_or_else(BTreeMap::new, |(census, _)| census.members.clone())
    }

    /// Whether the disks of so many voters are nearly full that the rest is no quorum, as of the last pulse.
    pub(crate) fn are_low(&self) -> bool {
        self.are_low.load(Ordering::Relaxed)
    }

    /// Counts whose disk is nearly full among `voters`.
    fn count_low(&self, voters: &BTreeSet<u64>) {
        let pulses = self.all_lately();
        let low = voters.iter().filter(|id| pulses.get(*id).is_some_and(|pulse| pulse.storage_low)).count();
        self.are_low.store((voters.len() - low) * 2 <= voters.len(), Ordering::Relaxed);
    }

    fn note_census(&self, census: Census) {
        self.known().census = Some((census, kunci_process::now()));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_fresh(at: Instant) -> bool {
    kunci_process::now().saturating_duration_since(at) <= FRESH
}

/// Answers a member's pulse.
pub(crate) fn answer(
    vitals: &Vitals,
    lead: &watch::Receiver<Lead>,
    node_id: u64,
    from: u64,
    pulse: Pulse,
) -> Census {
    vitals.note(from, pulse);
    match &*lead.borrow() {
        Lead::Here => Census { leader: Some(node_id), members: vitals.all_lately() },
        Lead::At { node_id: leader, .. } => Census { leader: Some(*leader), ..Census::default() },
        Lead::Nobody { .. } => Census::default(),
    }
}

/// Tells the leader once a second how this node is, and looks at the disk. Ends with the replica.
pub(crate) async fn beat(seat: Arc<Seat>) {
    let mut every = kunci_process::interval(EVERY);
    let mut lead = seat.lead.subscribe();
    loop {
        tokio::select! {
            biased;
            () = seat.stopped.cancelled() => return,
            _ = every.tick() => {}
            // A new leader knows nobody yet.
            _ = lead.changed() => {}
        }
        seat.disk.look();
        let pulse = seat.pulse();
        seat.vitals.note(seat.me.node_id, pulse.clone());
        let lead = seat.lead.borrow().clone();
        match lead {
            Lead::Here => seat.vitals.count_low(&seat.membership().voters),
            Lead::At { node_id, .. } => {
                seat.tell(node_id, &pulse).await;
            }
            // Whoever leads may not know where this node is now, so it can't be waited for.
            Lead::Nobody { .. } => {
                let others: Vec<u64> =
                    seat.membership().members.into_keys().filter(|id| *id != seat.me.node_id).collect();
                let told = others.into_iter().map(|node_id| seat.tell(node_id, &pulse));
                futures::future::join_all(told).await;
            }
        }
    }
}

impl Seat {
    /// How this node is.
    pub(crate) fn pulse(&self) -> Pulse {
        Pulse {
            member: self.member.clone(),
            applied_index: self.machine.view(crate::state_machine::MachineState::applied_index),
            storage_low: self.disk.is_low(),
            disk_stuck: self.disk.is_stuck(),
            feature_level: FEATURE_LEVEL,
        }
    }

    async fn tell(&self, node_id: u64, pulse: &Pulse) {
        let Some(member) = self.roster.member(node_id) else { return };
        // A member that can't be reached shows in its silence.
        if let Ok(census) = self.asks.pulse(node_id, &member.peer, pulse, WITHIN).await
            && census.leader == Some(node_id)
        {
            self.vitals.note_census(census);
        }
    }
}
