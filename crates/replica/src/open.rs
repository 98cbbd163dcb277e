//! Putting a replica together: as a node that lived before, as the first of a new cluster, or as an invited one.
//!
//! Owns: the order of it. Never: starts a node as new beside data of an old one (see `data_folder`).

use crate::batcher::Batcher;
use crate::config::{OpenError, ReplicaConfig};
use crate::data_folder::{DataFolder, Expected, Identity, Stores, identity_file};
use crate::disk::Disk;
use crate::lead::{Lead, NoLead};
use crate::leader;
use crate::log_store::LogOptions;
use crate::members;
use crate::replica::{Raft, Replica};
use crate::seat::Seat;
use crate::state_machine::{MachineState, StateMachine};
use crate::storage::Storage;
use crate::term::Term;
use crate::transport::{Asks, Host, Invited, Me, PeerDoor, PeerNetworks, Roster, dispatch};
use crate::vitals::{self, Vitals};
use kunci_types::Revision;
use openraft::SnapshotPolicy;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// The node that founds a cluster. Those that join get larger ids.
const FOUNDER: u64 = 1;
/// Connections of other members that wait to be served, and those for calls that wait to be taken.
const INCOMING_MAX: usize = 64;

impl Replica {
    /// Whether a node lives in the folder already.
    pub fn has_identity(data: &Path) -> bool {
        Self::has_identity_on(&Storage::system(), data)
    }

    /// As [`Replica::has_identity`], on any storage.
    pub fn has_identity_on(storage: &Storage, data: &Path) -> bool {
        storage.files().exists(&identity_file(data))
    }

    /// Starts the node that lives in the data folder.
    ///
    /// # Errors
    /// In plain words, when there is none, or the folder can't be used as it is.
    pub async fn open(config: ReplicaConfig, door: PeerDoor) -> Result<Self, OpenError> {
        Self::open_on(Storage::system(), config, door).await
    }

    /// As [`Replica::open`], on any storage.
    ///
    /// # Errors
    /// As [`Replica::open`].
    pub async fn open_on(storage: Storage, config: ReplicaConfig, door: PeerDoor) -> Result<Self, OpenError> {
        let folder = DataFolder::open_existing(&storage, &config.data)?;
        door.check_is_for(folder.identity().node_id)?;
        start(storage, config, door, folder).await
    }

    /// Forms a new cluster, whose tokens are all larger than `token_floor`, with this node as its only member.
    ///
    /// # Errors
    /// When a node lives in the folder already, or the folder can't be used as it is.
    pub async fn form(
        config: ReplicaConfig,
        door: PeerDoor,
        token_floor: Option<Revision>,
    ) -> Result<Self, OpenError> {
        Self::form_on(Storage::system(), config, door, token_floor).await
    }

    /// As [`Replica::form`], on any storage.
    ///
    /// # Errors
    /// As [`Replica::form`].
    pub async fn form_on(
        storage: Storage,
        config: ReplicaConfig,
        door: PeerDoor,
        token_floor: Option<Revision>,
    ) -> Result<Self, OpenError> {
        door.check_is_for(FOUNDER)?;
        let expected = Expected { node_id: Some(FOUNDER), cluster_id: None, token_floor };
        let folder = new_folder(&storage, &config.data, expected).await?;
        start(storage, config, door, folder).await
    }

    /// Takes up an invitation into a cluster, as a learner with an empty log.
    ///
    /// # Errors
    /// When a node lives in the folder already, or the folder can't be used as it is.
    pub async fn join(config: ReplicaConfig, door: PeerDoor, invited: Invited) -> Result<Self, OpenError> {
        Self::join_on(Storage::system(), config, door, invited).await
    }

    /// As [`Replica::join`], on any storage.
    ///
    /// # Errors
    /// As [`Replica::join`].
    pub async fn join_on(
        storage: Storage,
        config: ReplicaConfig,
        door: PeerDoor,
        invited: Invited,
    ) -> Result<Self, OpenError> {
        door.check_is_for(invited.node_id)?;
        let (node_id, cluster_id) = (Some(invited.node_id), Some(invited.cluster_id));
        let expected = Expected { node_id, cluster_id, token_floor: None };
        let folder = new_folder(&storage, &config.data, expected).await?;
        let replica = start(storage, config, door, folder).await?;
        invited.accept();
        Ok(replica)
    }
}

async fn new_folder(storage: &Storage, data: &Path, expected: Expected) -> Result<DataFolder, OpenError> {
    if Replica::has_identity_on(storage, data) {
        let folder = DataFolder::open_existing(storage, data)?;
        let identity = folder.identity();
        return Err(OpenError::Occupied {
            folder: data.to_owned(),
            node_id: identity.node_id,
            cluster_id: identity.cluster_id,
        });
    }
    Ok(DataFolder::open_on(storage, data, expected).await?)
}

async fn start(
    storage: Storage,
    config: ReplicaConfig,
    door: PeerDoor,
    folder: DataFolder,
) -> Result<Replica, OpenError> {
    let identity = *folder.identity();
    let Stores { log, snapshots } = folder.open_stores(&LogOptions::default()).await?;
    let disk = Disk::new(Arc::clone(storage.files()), config.data.clone(), log.syncs());
    let observer = config.observer.clone();
    let state_machine = StateMachine::observed(snapshots.clone(), observer).map_err(OpenError::State)?;
    let machine = state_machine.machine();
    let log_end = log.last().map_err(OpenError::State)?.map_or(0, |last| last.index);
    machine.measure_after(log_end);
    let log_size = log.size();
    if let Some(observer) = &config.observer {
        let index = machine.view(MachineState::applied_index);
        observer.begins(identity.node_id, identity.cluster_id, index, log_end);
    }
    let settings = settings(&config, &identity).map_err(OpenError::Start)?;

    let me = Me { cluster_id: identity.cluster_id, node_id: identity.node_id };
    let roster = Roster::default();
    let dialer = door.dialer(me, roster.clone());
    let asks = Asks::new(dialer.clone());
    let networks = PeerNetworks::new(dialer.clone(), asks.clone());
    // Many kilobytes, once: on the heap, so that they aren't part of every future that opens a replica.
    let raft = Box::pin(Raft::new(me.node_id, Arc::new(settings), networks, log, state_machine)).await;
    let raft = raft.map_err(|error| OpenError::Start(error.to_string()))?;
    begin(&raft, me, &config).await.map_err(OpenError::Start)?;

    let term = Term::new();
    let nobody = Lead::Nobody { why: NoLead::Electing, since: kunci_process::now() };
    let (lead, vitals) = (watch::Sender::new(nobody), Arc::new(Vitals::default()));
    let on_pulse = {
        let (vitals, lead) = (Arc::clone(&vitals), lead.subscribe());
        Arc::new(move |from, pulse| vitals::answer(&vitals, &lead, me.node_id, from, pulse))
    };
    let (incoming, incoming_here) = mpsc::channel(INCOMING_MAX);
    let (calls, calls_here) = mpsc::channel(INCOMING_MAX);
    let stopped = CancellationToken::new();
    let host = Host::new(raft.clone(), snapshots.clone(), dialer.clone(), on_pulse);
    kunci_process::spawn(dispatch(host, incoming_here, calls, stopped.clone()));
    let guard = door.open(me, roster.clone(), config.member.clone(), incoming);

    let seat = Arc::new(Seat {
        me,
        member: config.member,
        batcher: Batcher::start(raft.clone(), Arc::clone(&machine), Arc::clone(&term)),
        raft,
        machine,
        term,
        roster,
        dialer,
        asks,
        vitals,
        disk,
        log_size,
        snapshots,
        lead,
        failed: watch::Sender::new(None),
        stopped,
        token_floor: identity.token_floor,
        snapshot_every_bytes: config.snapshot_every_bytes,
        entries_kept: config.entries_kept,
        changing: tokio::sync::Mutex::default(),
        handing_over: tokio::sync::Mutex::default(),
        calls: Mutex::new(Some(calls_here)),
        door: Mutex::new(Some(guard)),
        folder: Mutex::new(Some(folder)),
    });
    kunci_process::spawn(leader::watch(Arc::clone(&seat)));
    kunci_process::spawn(members::tend(Arc::clone(&seat)));
    kunci_process::spawn(vitals::beat(Arc::clone(&seat)));
    Ok(Replica { seat })
}

/// The first steps of the library: a founder without a log forms its cluster; an only voter needn't wait for anybody.
async fn begin(raft: &Raft, me: Me, config: &ReplicaConfig) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    if raft.is_initialized().await.map_err(|error| failed(&error))? {
        if raft.voter_ids().eq([me.node_id]) {
            raft.trigger().elect(false).await.map_err(|error| failed(&error))?;
        }
        return Ok(());
    }
    // Whoever joined waits for its first entries from the leader; only the founder may begin.
    if me.node_id == FOUNDER {
        let members = BTreeMap::from([(me.node_id, config.member.clone())]);
        raft.initialize(members).await.map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// How long this node waits without a leader before it may vote for another, and after that before it stands for
/// election itself: a window of its own, in milliseconds, in the middle half of `election` to twice that.
///
/// Two members that stand at the same time split the votes, and everybody waits once more. Multiples of the golden
/// ratio lie far apart for any few numbers, so members' windows hardly meet, whatever their ids. Not the lowest part,
/// since a leader that stalls for half a second lives; not the highest, since a dead one is to be followed soon.
fn election_window(election: Duration, node_id: u64) -> (u64, u64) {
    const GOLDEN_PERMILLE: u64 = 618;
    let (begin, span) = (millis(election) * 5 / 4, millis(election) / 2);
    let width = span / 10;
    let slot = (span - width) * (node_id % 1_000 * GOLDEN_PERMILLE % 1_000) / 1_000;
    (begin + slot, begin + slot + width)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn settings(config: &ReplicaConfig, identity: &Identity) -> Result<openraft::Config, String> {
    let (election_min, election_max) = election_window(config.election, identity.node_id);
    let settings = openraft::Config {
        cluster_name: identity.cluster_id.to_string(),
        heartbeat_interval: millis(config.heartbeat),
        election_timeout_min: election_min,
        election_timeout_max: election_max,
        enable_pre_vote: Some(true),
        // A leader that is heard but hears nobody falls silent by itself: after a second without answers its links are
        // dropped, and a handshake needs both ways (see `transport`).
        quorum_loss_probe_interval: None,
        // A leader that restarts counts as new.
        enable_leader_restore: Some(false),
        // Both are asked for (see `log_length`): snapshots by bytes, since an entry may hold one command or thousands,
        // and purges bit by bit.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: u64::MAX,
        max_payload_entries: 1_024,
        replication_lag_threshold: 10,
        ..openraft::Config::default()
    };
    settings.validate().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_for_election_one_after_the_other() {
        let windows: Vec<(u64, u64)> =
            (1..=50).map(|node_id| election_window(Duration::from_millis(200), node_id)).collect();
        assert!(
            windows.iter().all(|(begin, end)| 250 <= *begin && begin < end && *end <= 350),
            "{windows:?}"
        );
        // Any three members that came one after the other, or with one replaced in between.
        for (index, (one, _)) in windows.iter().enumerate() {
            for (other, _) in windows.iter().skip(index + 1).take(3) {
                assert!(one.abs_diff(*other) >= 10, "node {}: {one} and {other} ms", index + 1);
            }
        }
    }
}
