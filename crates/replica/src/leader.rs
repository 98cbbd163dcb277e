//! What a leader does of its own accord, all by proposing.
//!
//! Owns: the beginning and end of this node's term: takeover, the term's clock, serving or not; carrying the
//! time when nothing else does; asking for snapshots. Never: changes the state by another way than the log.

use crate::batcher::Batcher;
use crate::clock::{ClusterClock, SAMPLE_EVERY};
use crate::raft_types::EntryBytes;
use crate::replica::Raft;
use crate::state_machine::Machine;
use kunci_core::command::{Command, Entry, RaiseRevision};
use kunci_types::{ClusterTime, Revision};
use openraft::ServerState;
use openraft::async_runtime::WatchReceiver;
use openraft::raft::ReadPolicy;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, timeout};

/// While a deadline is pending, the log's time is never further behind than this, so that a leader change
/// costs at most that.
const TIME_COMMITTED_EVERY_MS: u64 = 1_000;
/// How long the first steps of a term may take before they are tried again.
const TAKE_OVER_WITHIN: Duration = Duration::from_secs(5);

/// The term in which this node leads, if it does.
#[derive(Debug)]
pub(crate) struct Term {
    clock: Mutex<Option<ClusterClock>>,
    serving: watch::Sender<bool>,
}

impl Term {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { clock: Mutex::new(None), serving: watch::Sender::new(false) })
    }

    /// Cluster time now; `None` when this node doesn't lead.
    pub(crate) fn now(&self) -> Option<ClusterTime> {
        self.clock().as_mut().map(ClusterClock::sample)
    }

    pub(crate) fn is_served(&self) -> bool {
        *self.serving.borrow()
    }

    pub(crate) fn serving(&self) -> watch::Receiver<bool> {
        self.serving.subscribe()
    }

    fn begin(&self, start: ClusterTime) {
        *self.clock() = Some(ClusterClock::start(start));
        self.serving.send_replace(true);
    }

    pub(crate) fn end(&self) {
        self.serving.send_replace(false);
        *self.clock() = None;
    }

    fn clock(&self) -> MutexGuard<'_, Option<ClusterClock>> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that watches over the term.
pub(crate) struct Leader {
    pub(crate) node_id: u64,
    pub(crate) raft: Raft,
    pub(crate) machine: Arc<Machine>,
    pub(crate) term: Arc<Term>,
    pub(crate) batcher: Batcher,
    /// Every token of a new cluster is larger than this.
    pub(crate) token_floor: Option<Revision>,
    pub(crate) snapshot_every_bytes: u64,
    /// Told once, when the replica can't go on.
    pub(crate) failed: watch::Sender<Option<String>>,
}

impl Leader {
    /// Runs until the replica stops or fails.
    pub(crate) async fn run(self) {
        let mut metrics = self.raft.metrics();
        let mut tick = tokio::time::interval(SAMPLE_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut leads_in = None;
        loop {
            let ticked = tokio::select! {
                changed = metrics.changed() => match changed {
                    Ok(()) => false,
                    Err(_) => break,
                },
                _ = tick.tick() => true,
            };
            let (running, leads, raft_term) = {
                let metrics = metrics.borrow_watched();
                let leads =
                    metrics.state == ServerState::Leader && metrics.current_leader == Some(self.node_id);
                (metrics.running_state.clone(), leads, metrics.current_term)
            };
            if let Err(fatal) = running {
                self.failed.send_replace(Some(fatal.to_string()));
                break;
            }
            if leads_in.is_some() && (!leads || leads_in != Some(raft_term)) {
                leads_in = None;
                self.step_down();
            }
            if leads && leads_in.is_none() && self.take_over().await {
                leads_in = Some(raft_term);
                tracing::info!(term = raft_term, "took over as leader");
            }
            if ticked {
                self.on_tick().await;
            }
        }
        self.step_down();
    }

    /// Begins the term: everything of earlier terms is applied first, then the takeover, then the clock starts
    /// at the log's time.
    async fn take_over(&self) -> bool {
        let begun = timeout(TAKE_OVER_WITHIN, async {
            // A library that says «leader» can't commit yet (trap 5 of the design); this waits until it can and
            // has applied what earlier leaders committed.
            self.raft.ensure_linearizable(ReadPolicy::ReadIndex).await.ok()?;
            let (now, revision) = self.machine.view(|state| (state.table.now(), state.table.revision()));
            let mut commands = vec![Command::TakeOver];
            if let Some(floor) = self.token_floor.filter(|floor| revision < *floor) {
                commands.push(Command::RaiseRevision(RaiseRevision { floor }));
            }
            let entry = EntryBytes(Entry { now, commands }.encode().into());
            self.raft.client_write(entry).await.ok()?;
            Some(now)
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

    fn step_down(&self) {
        self.term.end();
        self.machine.room.end_all();
    }

    async fn on_tick(&self) {
        // Sampling at every tick is what tells an idle log from a stalled machine.
        if let Some(now) = self.term.now() {
            let (deadline, committed) =
                self.machine.view(|state| (state.table.next_deadline(), state.table.now()));
            let behind = now.ms_since(committed) >= TIME_COMMITTED_EVERY_MS;
            if deadline.is_some_and(|deadline| deadline <= now || behind) {
                self.batcher.advance_time();
            }
        }
        if self.machine.unsnapped_bytes() >= self.snapshot_every_bytes {
            // A failure shows in the replica's running state.
            drop(self.raft.trigger().snapshot().await);
        }
    }
}
