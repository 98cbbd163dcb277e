//! A cluster in one process: the real library, log and state machine, over the network of the tests.

use super::super::door::{DoorGuard, Incoming};
use super::super::handshake::Purpose;
use super::super::raft_client::{Asks, PeerNetworks};
use super::super::raft_server::{Host, serve};
use super::super::snapshot_link::HalfReceived;
use super::net::{Net, me, member, roster};
use crate::log_store::{LogOptions, LogStore};
use crate::pulse::Census;
use crate::raft_types::{EntryBytes, Member};
use crate::replica::Raft;
use crate::snapshot_store::SnapshotStore;
use crate::state_machine::{Machine, StateMachine};
use kunci_core::command::{Acquire, Command, Entry, RequestIdFrom};
use kunci_types::{
    Attempt, Caller, ClusterTime, LeaseId, LockDelay, Metadata, Owner, RequestId, ResourceName, Wait,
};
use openraft::SnapshotPolicy;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ClientWriteError, ForwardReason, RaftError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// The least time without a leader before a node stands, unless a test says otherwise.
pub(super) const ELECTION_MS: u64 = 500;

/// One node. Dropping it stops what it serves; its library goes on until it is shut down.
pub(super) struct Node {
    pub(super) id: u64,
    pub(super) raft: Raft,
    pub(super) machine: Arc<Machine>,
    pub(super) host: Host,
    pub(super) asks: Asks,
    /// How many connections came in, by node and purpose.
    pub(super) came_in: Arc<Mutex<BTreeMap<(u64, Purpose), usize>>>,
    pub(super) folder: tempfile::TempDir,
    serving: JoinHandle<()>,
    _door: DoorGuard,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Node {
    pub(super) async fn start(net: &Net, id: u64) -> Self {
        Self::start_with(net, id, ELECTION_MS, HalfReceived::default()).await
    }

    pub(super) async fn start_with(
        net: &Net,
        id: u64,
        election_ms: u64,
        half_received: HalfReceived,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (log_folder, snapshot_folder) = (folder.path().join("log"), folder.path().join("snapshots"));
        std::fs::create_dir(&log_folder).unwrap();
        std::fs::create_dir(&snapshot_folder).unwrap();
        let (log, _) = LogStore::open(&log_folder, &LogOptions::default()).unwrap();
        let snapshots = SnapshotStore::open(&snapshot_folder, me(id).cluster_id, None).unwrap();
        let state_machine = StateMachine::open(snapshots.clone()).unwrap();
        let machine = state_machine.machine();
        let door = net.door(id);
        let dialer = door.dialer(me(id), roster());
        let asks = Asks::new(dialer.clone());
        let networks = PeerNetworks::new(dialer.clone(), asks.clone());
        let raft =
            Raft::new(id, Arc::new(settings(election_ms)), networks, log, state_machine).await.unwrap();
        let on_pulse = Arc::new(|from, _| Census { leader: Some(from), ..Census::default() });
        let host = Host::new(raft.clone(), snapshots, dialer.clone(), on_pulse);
        let host = Host { half_received, ..host };
        let (incoming, taken) = mpsc::channel(16);
        let guard = door.open(me(id), dialer.roster().clone(), member(id), incoming);
        let came_in = Arc::default();
        let serving = tokio::spawn(serve_all(host.clone(), taken, Arc::clone(&came_in)));
        Self { id, raft, machine, host, asks, came_in, folder, serving, _door: guard }
    }

    /// Its process ends: nothing of it goes on, and its door refuses.
    pub(super) async fn end(self) {
        self.serving.abort();
        self.raft.shutdown().await.unwrap();
    }

    pub(super) fn applied(&self) -> u64 {
        self.machine.view(crate::state_machine::MachineState::applied_index)
    }

    pub(super) fn leader(&self) -> Option<u64> {
        self.raft.metrics().borrow_watched().current_leader
    }

    pub(super) fn term(&self) -> u64 {
        self.raft.metrics().borrow_watched().current_term
    }

    pub(super) fn came_in(&self, from: u64, purpose: Purpose) -> usize {
        self.came_in.lock().unwrap().get(&(from, purpose)).copied().unwrap_or(0)
    }

    /// Writes one entry with these commands; gives its index.
    pub(super) async fn write(&self, commands: Vec<Command>) -> u64 {
        let entry = EntryBytes(Entry::new(ClusterTime::from_ms(1), commands).encode().into());
        loop {
            match self.raft.client_write(entry.clone()).await {
                Ok(written) => return written.log_id.index,
                // It was elected, and has yet to hear from a quorum.
                Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward)))
                    if forward.reason == ForwardReason::LeaseExpired =>
                {
                    sleep(Duration::from_millis(10)).await;
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    /// Writes entries until the state holds this many more leases, with 1 KiB of metadata each.
    pub(super) async fn fill(&self, leases: u64) {
        let first = self.machine.view(|state| state.table.held_count());
        for hundred in 0..leases.div_ceil(100) {
            let numbers = first + hundred * 100..first + (hundred + 1) * 100;
            self.write(numbers.map(|number| Command::Acquire(acquire(number))).collect()).await;
        }
    }

    /// Makes a snapshot and purges what it covers.
    pub(super) async fn snapshot_and_purge(&self) {
        let last = self.applied();
        self.raft.trigger().snapshot().await.unwrap();
        let is_made = || self.raft.metrics().borrow_watched().snapshot.is_some_and(|made| made.index >= last);
        until("a snapshot is made", is_made).await;
        self.raft.trigger().purge_log(last).await.unwrap();
        let is_purged =
            || self.raft.metrics().borrow_watched().purged.is_some_and(|purged| purged.index >= last);
        until("the log is purged", is_purged).await;
    }
}

async fn serve_all(
    host: Host,
    mut taken: mpsc::Receiver<Incoming>,
    came_in: Arc<Mutex<BTreeMap<(u64, Purpose), usize>>>,
) {
    let mut served = tokio::task::JoinSet::new();
    while let Some(incoming) = taken.recv().await {
        *came_in.lock().unwrap().entry((incoming.from, incoming.purpose)).or_default() += 1;
        served.spawn(serve(host.clone(), incoming));
    }
}

fn settings(election_ms: u64) -> openraft::Config {
    let settings = openraft::Config {
        heartbeat_interval: 50,
        election_timeout_min: election_ms,
        election_timeout_max: 2 * election_ms,
        enable_pre_vote: Some(true),
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: 0,
        purge_batch_size: 1_024,
        replication_lag_threshold: 10,
        ..openraft::Config::default()
    };
    settings.validate().unwrap()
}

/// Nodes 1 to 3, all voters.
pub(super) struct Cluster {
    pub(super) net: Net,
    pub(super) nodes: Vec<Node>,
}

impl Cluster {
    pub(super) async fn start() -> Self {
        Self::start_with(ELECTION_MS).await
    }

    /// With another election timeout.
    pub(super) async fn start_with(election_ms: u64) -> Self {
        let net = Net::default();
        let mut nodes = Vec::new();
        for id in 1..=3 {
            nodes.push(Node::start_with(&net, id, election_ms, HalfReceived::default()).await);
        }
        let members: BTreeMap<u64, Member> = (1..=3).map(|id| (id, member(id))).collect();
        nodes[0].raft.initialize(members).await.unwrap();
        let cluster = Self { net, nodes };
        cluster.leader().await;
        cluster
    }

    pub(super) fn node(&self, id: u64) -> &Node {
        self.nodes.iter().find(|node| node.id == id).unwrap()
    }

    /// The leader that a majority follows.
    pub(super) async fn leader(&self) -> &Node {
        self.leader_among(&[1, 2, 3]).await
    }

    /// The one of these nodes that leads and is followed by another of them, or more.
    pub(super) async fn leader_among(&self, ids: &[u64]) -> &Node {
        let followed = || {
            ids.iter().copied().find(|id| {
                let followers = ids.iter().filter(|other| self.node(**other).leader() == Some(*id));
                followers.count() >= 2 && self.node(*id).leader() == Some(*id)
            })
        };
        until("a leader is followed", || followed().is_some()).await;
        self.node(followed().unwrap())
    }

    /// The nodes that don't lead.
    pub(super) fn others(&self, leader: &Node) -> [&Node; 2] {
        let others: Vec<_> = self.nodes.iter().filter(|node| node.id != leader.id).collect();
        [others[0], others[1]]
    }

    pub(super) async fn all_applied(&self, index: u64) {
        until("all have applied it", || self.nodes.iter().all(|node| node.applied() >= index)).await;
    }

    pub(super) fn same_state(&self) {
        let digests: Vec<_> = self
            .nodes
            .iter()
            .map(|node| node.machine.view(|state| state.table.snapshot().digest()))
            .collect();
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    }
}

pub(super) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain until {what}");
}

fn acquire(number: u64) -> Acquire {
    let owner = Owner::parse("w").unwrap();
    Acquire {
        resource: ResourceName::parse(&format!("r/{number}")).unwrap(),
        caller: Caller::Unproven(owner.clone()),
        owner,
        request_id: RequestId::parse(&format!("q{number}")).unwrap(),
        request_id_from: RequestIdFrom::Client,
        ttl: None,
        wait: Wait::Try,
        lock_delay: LockDelay::from_ms(0),
        metadata: Some(Metadata::parse(&"m".repeat(1_000)).unwrap()),
        lease_id: LeaseId::from_bytes(u128::from(number + 1).to_be_bytes()),
        attempt: Attempt::new(number + 1),
    }
}
