//! One node's share of the agreement, as the rest of the house sees it: propose, read, watch, status.

use crate::answered::{Answered, Refusal};
use crate::batcher::{Batcher, Proposal};
use crate::config::{OpenError, ReplicaConfig};
use crate::data_folder::{ClusterId, DataFolder, Expected};
use crate::events::{Compacted, Watch};
use crate::leader::{Leader, Term};
use crate::log_store::LogOptions;
use crate::network::NoPeers;
use crate::raft_types::TypeConfig;
use crate::state_machine::{Machine, StateMachine};
use crate::status::{Counts, MemberStatus, NodeStatus, Role};
use crate::waiting_room::WaitingRoom;
use kunci_core::LockTable;
use kunci_core::command::Command;
use kunci_core::event::Event;
use kunci_core::reply::Reply;
use kunci_core::view::View;
use kunci_types::{ResourceName, Revision};
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{LinearizableReadError, RaftError};
use openraft::raft::ReadPolicy;
use openraft::{ServerState, SnapshotPolicy};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};

/// How long a read may wait for the leader's proof that it leads.
const READ_WITHIN: Duration = Duration::from_secs(2);

pub(crate) type Raft = openraft::Raft<TypeConfig, StateMachine>;

/// One node's share of the agreement. A clone is another handle to the same.
#[derive(Clone)]
pub struct Replica {
    inner: Arc<Inner>,
}

struct Inner {
    node_id: u64,
    cluster_id: ClusterId,
    raft: Raft,
    machine: Arc<Machine>,
    term: Arc<Term>,
    batcher: Batcher,
    failed: watch::Receiver<Option<String>>,
    /// Held until the replica has stopped, so that no other process takes the folder.
    folder: Mutex<Option<DataFolder>>,
}

impl Replica {
    /// Opens the data folder, forming a cluster of one in an empty one, and starts.
    ///
    /// # Errors
    /// In plain words, when the folder can't be used as it is.
    pub async fn open(config: ReplicaConfig) -> Result<Self, OpenError> {
        let folder = DataFolder::open(&config.data, Expected::default())?;
        let identity = *folder.identity();
        let stores = folder.open_stores(&LogOptions::default())?;
        let state_machine = StateMachine::open(stores.snapshots).map_err(OpenError::State)?;
        let machine = state_machine.machine();
        let settings = settings(&config, &identity.cluster_id).map_err(OpenError::Start)?;
        let start = |error: &dyn std::fmt::Display| OpenError::Start(error.to_string());
        let raft = Raft::new(identity.node_id, Arc::new(settings), NoPeers, stores.log, state_machine)
            .await
            .map_err(|error| start(&error))?;
        if raft.is_initialized().await.map_err(|error| start(&error))? {
            // Alone, there is nobody to wait for before standing for election.
            raft.trigger().elect(false).await.map_err(|error| start(&error))?;
        } else {
            let members = BTreeMap::from([(identity.node_id, config.member.clone())]);
            raft.initialize(members).await.map_err(|error| start(&error))?;
        }
        let term = Term::new();
        let batcher = Batcher::start(raft.clone(), Arc::clone(&machine), Arc::clone(&term));
        let (failed, failed_seen) = watch::channel(None);
        let leader = Leader {
            node_id: identity.node_id,
            raft: raft.clone(),
            machine: Arc::clone(&machine),
            term: Arc::clone(&term),
            batcher: batcher.clone(),
            token_floor: config.token_floor,
            snapshot_every_bytes: config.snapshot_every_bytes,
            failed,
        };
        tokio::spawn(leader.run());
        let inner = Inner {
            node_id: identity.node_id,
            cluster_id: identity.cluster_id,
            raft,
            machine,
            term,
            batcher,
            failed: failed_seen,
            folder: Mutex::new(Some(folder)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Proposes a command and waits until it is on a quorum's disks and applied.
    ///
    /// # Errors
    /// When nothing was proposed, or the outcome can't be known here.
    pub async fn propose(&self, command: Command) -> Result<Answered<Reply>, Refusal> {
        self.submit(command, None)?.await.unwrap_or(Err(Refusal::OutcomeUnknown))
    }

    pub(crate) fn submit(
        &self,
        command: Command,
        too_late: Option<Instant>,
    ) -> Result<oneshot::Receiver<Result<Answered<Reply>, Refusal>>, Refusal> {
        if !self.inner.term.is_served() {
            return Err(Refusal::NoLeader);
        }
        // Level 1 is every release's; the state is asked only for what came later.
        let level = command.feature_level();
        if level > 1 && level > self.inner.machine.view(|state| state.table.feature_level()) {
            return Err(Refusal::NotEnabled);
        }
        let (reply, receiver) = oneshot::channel();
        self.inner.batcher.submit(Proposal { command, reply, too_late })?;
        Ok(receiver)
    }

    /// Looks at the locks, not before everything that was acknowledged when the read began.
    ///
    /// # Errors
    /// When this node can't prove that it leads.
    pub async fn read<T>(&self, view: impl FnOnce(&View<'_>) -> T) -> Result<Answered<T>, Refusal> {
        if !self.inner.term.is_served() {
            return Err(Refusal::NoLeader);
        }
        // Read-index only: a lease read isn't safe in this version of the library (trap 4 of the design).
        let proof = self.inner.raft.ensure_linearizable(ReadPolicy::ReadIndex);
        match timeout(READ_WITHIN, proof).await {
            // Between two entries only the leader's clock says how much of a lease is left.
            Ok(Ok(_)) => {
                let now = self.inner.term.now().ok_or(Refusal::NoLeader)?;
                Ok(self.inner.machine.answered(|table| view(&table.seen_at(now))))
            }
            Ok(Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(_)))) => Err(Refusal::NoLeader),
            Ok(Err(RaftError::Fatal(_))) => Err(Refusal::NoLeader),
            Ok(Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)))) | Err(_) => {
                Err(Refusal::NoQuorum)
            }
        }
    }

    /// Looks at this node's own state, which may be behind. For pages about the node, never about locks.
    pub fn local_view<T>(&self, view: impl FnOnce(&LockTable) -> T) -> Answered<T> {
        self.inner.machine.answered(view)
    }

    /// Watches events from after a revision, or from now on.
    ///
    /// # Errors
    /// When events after that revision are no longer kept.
    pub fn watch(&self, after: Option<Revision>) -> Result<Watch, Compacted> {
        self.inner.machine.events.watch(after)
    }

    /// The kept events of one resource, oldest first.
    pub fn history(&self, resource: &ResourceName) -> Vec<Event> {
        self.inner.machine.events.history(resource)
    }

    /// The node.
    pub fn node_id(&self) -> u64 {
        self.inner.node_id
    }

    /// The cluster.
    pub fn cluster_id(&self) -> ClusterId {
        self.inner.cluster_id
    }

    /// How many calls wait on this node.
    pub fn waiting_calls(&self) -> usize {
        self.room().len()
    }

    /// How this node stands, as it knows by itself; no quorum is asked.
    pub fn status(&self) -> NodeStatus {
        let metrics = self.inner.raft.metrics().borrow_watched().clone();
        let role = match metrics.state {
            ServerState::Leader => Role::Leader,
            ServerState::Candidate => Role::Candidate,
            ServerState::Learner => Role::Learner,
            ServerState::Follower | ServerState::Shutdown => Role::Follower,
        };
        let members = metrics.membership_config.membership().nodes().map(|(id, member)| MemberStatus {
            id: *id,
            role: if *id == self.inner.node_id { role } else { Role::Follower },
            http: member.http.clone(),
            native: member.native.clone(),
            zone: member.zone.clone(),
            healthy: *id == self.inner.node_id && metrics.running_state.is_ok(),
            applied_index: metrics.last_applied.map_or(0, |applied| applied.index),
        });
        let state = self.inner.machine.answered(|table| Counts {
            held: table.held_count(),
            waiters: table.waiter_count(),
            requests: table.request_count(),
        });
        NodeStatus {
            node_id: self.inner.node_id,
            cluster_id: self.inner.cluster_id,
            role,
            leader: metrics.current_leader,
            serving: self.inner.term.is_served(),
            applied_index: state.position.index,
            revision: state.revision,
            cluster_time: state.cluster_time,
            counts: state.value,
            members: members.collect(),
        }
    }

    /// Waits until this node answers requests, for at most `within`.
    pub async fn serving(&self, within: Duration) -> bool {
        let mut serving = self.inner.term.serving();
        timeout(within, serving.wait_for(|serving| *serving)).await.is_ok_and(|waited| waited.is_ok())
    }

    /// Waits until the replica can't go on, and says why. The process should end then.
    pub async fn failed(&self) -> String {
        let mut failed = self.inner.failed.clone();
        match failed.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            // It ended without a failure: it was stopped.
            Err(_) => std::future::pending().await,
        }
    }

    /// Makes a snapshot now, in the background.
    pub async fn trigger_snapshot(&self) {
        // A failure shows in `failed`.
        drop(self.inner.raft.trigger().snapshot().await);
    }

    /// Stops in good order: waiting calls end with a retriable error, then the log is closed.
    pub async fn stop(&self) {
        self.inner.term.end();
        self.room().end_all();
        self.inner.machine.events.close();
        if let Err(error) = self.inner.raft.shutdown().await {
            tracing::warn!(%error, "the replica didn't stop in good order");
        }
        drop(self.inner.folder.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    pub(crate) fn room(&self) -> &WaitingRoom {
        &self.inner.machine.room
    }

    pub(crate) fn waiter_grace_ms(&self) -> u64 {
        self.inner.machine.view(|state| state.table.policy().waiter_grace_ms)
    }
}

fn settings(config: &ReplicaConfig, cluster_id: &ClusterId) -> Result<openraft::Config, String> {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    openraft::Config {
        cluster_name: cluster_id.to_string(),
        heartbeat_interval: millis(config.heartbeat),
        election_timeout_min: millis(config.election),
        election_timeout_max: millis(config.election) * 2,
        enable_pre_vote: Some(true),
        // Snapshots are asked for by bytes (see `leader`), not by number of entries: an entry may hold one
        // command or thousands.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: 1_000,
        purge_batch_size: 1_024,
        max_payload_entries: 1_024,
        replication_lag_threshold: 10,
        ..openraft::Config::default()
    }
    .validate()
    .map_err(|error| error.to_string())
}
