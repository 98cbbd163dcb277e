//! The life of a leader: from the moment a quorum made this node leader to the moment it isn't any more.
//!
//! Owns: the beginning and end of this node's term: takeover, the term's clock, serving or not; carrying the time
//! when nothing else does; and the word on who leads. Never: changes the state by another way
//! than the log.

use crate::clock::SAMPLE_EVERY;
use crate::lead::{QUORUM_SILENT_MAX, Seen};
use crate::measures::Measures;
use crate::raft_types::{EntryBytes, TypeConfig};
use crate::seat::{Membership, Seat};
use crate::term::Phase;
use crate::wall_clock;
use kunci_core::command::{Command, Entry, Provenance, RaiseRevision};
use kunci_process::timeout;
use openraft::async_runtime::WatchReceiver;
use openraft::{Instant as _, RaftMetrics, ServerState};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// While a deadline is pending, the log's time is never further behind than this, so that a leader change
/// costs at most that.
const TIME_COMMITTED_EVERY_MS: u64 = 1_000;
/// How long the first steps of a term may take before they are tried again.
const TAKE_OVER_WITHIN: Duration = Duration::from_secs(1);

/// What the library says, as far as a leader's life depends on it.
struct Glance {
    /// The raft term in which this node leads.
    leads_in: Option<u64>,
    /// The term, and who leads in it.
    led: (u64, Option<u64>),
    /// Whether a quorum was heard of lately.
    has_quorum: bool,
    fatal: Option<String>,
}

/// What was measured of leaders so far.
#[derive(Default)]
struct Measured {
    /// The last term in which somebody led, and who.
    led: Option<(u64, u64)>,
    /// Since when this node leads without serving.
    elected: Option<Instant>,
}

impl Measured {
    fn look(&mut self, measures: &Measures, glance: &Glance) {
        if let (term, Some(leader)) = glance.led
            && self.led.is_none_or(|(seen, _)| seen < term)
        {
            measures.elections.count();
            if self.led.is_some_and(|(_, before)| before != leader) {
                measures.leader_changes.count();
            }
            self.led = Some((term, leader));
            self.elected = glance.leads_in.map(|_| kunci_process::now());
        }
    }

    fn took_over(&mut self, measures: &Measures) {
        if let Some(elected) = self.elected.take() {
            measures.takeover.record_time(kunci_process::now().saturating_duration_since(elected));
        }
    }
}

/// Runs until the replica stops or fails.
pub(crate) async fn watch(seat: Arc<Seat>) {
    let mut metrics = seat.raft.metrics();
    let mut tick = kunci_process::interval(SAMPLE_EVERY);
    let (mut serves_in, mut tries) = (None, Tries::default());
    let mut membership = None;
    let mut measured = Measured::default();
    loop {
        let ticked = tokio::select! {
            biased;
            // First: under load something changes all the time.
            _ = tick.tick() => true,
            changed = metrics.changed() => match changed {
                Ok(()) => false,
                Err(_) => break,
            },
        };
        let glance = {
            let metrics = metrics.borrow_watched();
            if membership.as_ref() != Some(&metrics.membership_config) {
                membership = Some(Arc::clone(&metrics.membership_config));
                seat.roster.update(Membership::of(&metrics).members);
            }
            seat.glance(&metrics)
        };
        #[cfg(kunci_plants)]
        if let Some(term) = glance.leads_in {
            crate::planted::show(|watching| watching.leads(term, seat.me.node_id));
        }
        if let Some(fatal) = glance.fatal {
            seat.failed.send_replace(Some(fatal));
            break;
        }
        measured.look(&seat.machine.measures, &glance);
        if serves_in.is_some() && glance.leads_in != serves_in {
            serves_in = None;
            tracing::info!("this node leads no more");
            seat.step_down(Phase::Away, &metrics.borrow_watched());
        } else if serves_in.is_some() && !glance.has_quorum {
            serves_in = None;
            tracing::warn!("no quorum of the members is reached: nothing is acknowledged until one is again");
            seat.step_down(Phase::WithoutQuorum, &metrics.borrow_watched());
        }
        let due = tries.next(ticked, glance.leads_in.filter(|_| serves_in.is_none() && glance.has_quorum));
        if let Some(term) = due
            && seat.take_over(term).await
        {
            serves_in = Some(term);
            measured.took_over(&seat.machine.measures);
            tracing::info!(term, "took over as leader");
        } else if glance.leads_in.is_none() && seat.term.phase() == Phase::WithoutQuorum {
            seat.step_down(Phase::Away, &metrics.borrow_watched());
        }
        seat.say_who_leads(&metrics.borrow_watched());
        if ticked {
            seat.on_tick().await;
        }
    }
    seat.step_down(Phase::Away, &metrics.borrow_watched());
}

/// When the next try to take over is due.
#[derive(Debug, Default)]
struct Tries {
    tried_in: Option<u64>,
}

impl Tries {
    /// The term to take over now, of `could`, the one that this node could take over. A try in vain changes what the
    /// library says, and that mustn't bring the next one at once: only a tick does.
    fn next(&mut self, ticked: bool, could: Option<u64>) -> Option<u64> {
        let due = could.filter(|_| ticked || self.tried_in != could);
        self.tried_in = could;
        due
    }
}

impl Seat {
    fn glance(&self, metrics: &RaftMetrics<TypeConfig>) -> Glance {
        let leads = metrics.state == ServerState::Leader && metrics.current_leader == Some(self.me.node_id);
        let is_alone = metrics.membership_config.membership().voter_ids().eq([self.me.node_id]);
        // Before the first answers of a term there is nothing to be late.
        let is_late = metrics.last_quorum_acked.is_some_and(|acked| acked.elapsed() > QUORUM_SILENT_MAX);
        Glance {
            leads_in: leads.then_some(metrics.current_term),
            led: (metrics.current_term, metrics.current_leader),
            has_quorum: is_alone || !is_late,
            fatal: metrics.running_state.as_ref().err().map(ToString::to_string),
        }
    }

    /// Begins the term: everything of earlier terms is applied first, then the takeover, then the clock starts
    /// at the log's time.
    async fn take_over(&self, term: u64) -> bool {
        #[cfg(kunci_plants)]
        if crate::planted::is(crate::planted::Bug::TakeOverLate) {
            kunci_process::sleep(Duration::from_secs(6)).await;
        }
        let begun = timeout(TAKE_OVER_WITHIN, async {
            self.applied_in(term).await?;
            let (now, revision) = self.machine.view(|state| (state.table.now(), state.table.revision()));
            let mut commands = vec![Command::TakeOver];
            if revision < self.token_floor {
                commands.push(Command::RaiseRevision(RaiseRevision { floor: self.token_floor }));
            }
            let provenance = Provenance::new(wall_clock::now(), Vec::new());
            let entry = EntryBytes(Entry { provenance, ..Entry::new(now, commands) }.encode().into());
            self.raft.client_write(entry).await.ok()?;
            Some(self.machine.view(|state| state.table.now()))
        })
        .await;
        match begun {
            Ok(Some(start)) => {
                self.term.begin(start);
                true
            }
            Ok(None) | Err(_) => false,
        }
    }

    /// Waits until an entry of this term is applied, and so everything that earlier leaders committed. A library that
    /// says «leader» can't commit before (trap 5 of the design). `None` when it has ended.
    async fn applied_in(&self, term: u64) -> Option<()> {
        let mut metrics = self.raft.metrics();
        while metrics.borrow_watched().last_applied.is_none_or(|applied| applied.leader_id.term != term) {
            metrics.changed().await.ok()?;
        }
        Some(())
    }

    /// Ends serving. Said at once: the next step may be a take-over, which takes its time.
    fn step_down(&self, phase: Phase, metrics: &RaftMetrics<TypeConfig>) {
        self.term.end(phase);
        self.machine.room.end_all();
        self.say_who_leads(metrics);
    }

    fn say_who_leads(&self, metrics: &RaftMetrics<TypeConfig>) {
        self.lead.send_if_modified(|lead| {
            let (node_id, phase) = (self.me.node_id, self.term.phase());
            let seen = Seen { node_id, phase, metrics, roster: &self.roster, before: lead }.lead();
            let changes = *lead != seen;
            if changes {
                self.machine.measures.lead_changed(lead, &seen);
            }
            *lead = seen;
            changes
        });
    }

    async fn on_tick(&self) {
        self.roster.note_ids_used(self.ids_applied());
        // Sampling at every tick is what tells an idle log from a stalled machine.
        if let Some(now) = self.term.now() {
            let (deadline, committed) =
                self.machine.view(|state| (state.table.next_deadline(), state.table.now()));
            let behind = now.ms_since(committed) >= TIME_COMMITTED_EVERY_MS;
            #[cfg(kunci_plants)]
            let deadline = crate::planted::looked_after(deadline);
            if deadline.is_some_and(|deadline| deadline <= now || behind) {
                self.batcher.advance_time();
            }
        }
        self.keep_log_short().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_take_over_in_vain_is_tried_again_at_the_next_tick_only() {
        let mut tries = Tries::default();
        assert_eq!(tries.next(false, None), None);
        assert_eq!(tries.next(false, Some(3)), Some(3), "a new term begins without a wait");
        for _ in 0..1_000 {
            assert_eq!(
                tries.next(false, Some(3)),
                None,
                "what the try itself changed is no reason for the next"
            );
        }
        assert_eq!(tries.next(true, Some(3)), Some(3));
        assert_eq!(tries.next(false, Some(5)), Some(5), "another term is another matter");
        assert_eq!(tries.next(false, None), None);
        assert_eq!(tries.next(false, Some(5)), Some(5), "so is one whose quorum came back");
    }
}
