//! The simulated disk is a disk: what the product's stores promise on files of the system, they keep on it.
//!
//! The log on it is not the product's (its library brings its own files and thread), so the two are compared first.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't set up its files should fail on the spot"
)]

// What the product's own tests of its stores say and compare.
#[path = "../../replica/tests/cluster_words/mod.rs"]
mod cluster_words;
#[path = "../../replica/tests/log_store_support/mod.rs"]
mod log_store_support;

use kunci_replica::data_folder::{ClusterId, DataFolder, Expected, FolderError, Stores};
use kunci_replica::log_store::LogStore;
use kunci_replica::raft_types::{LogId, SnapshotMeta, StoredMembership, TypeConfig};
use kunci_replica::{Member, PeerDoor, PeerSecurity, Replica, ReplicaConfig, StateMachine};
use kunci_sim::disk::{Disk, Loss, Part};
use kunci_sim::randomness::Seeded;
use log_store_support::{append, entry, log_files, membership, small_files, text_of, texts, vote};
use log_store_support::{log_with_every_kind_of_record, write_every_kind_of_record};
use openraft::storage::RaftLogStorage;
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::{RaftLogReader, StorageError};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const DATA: &str = "/data";

/// Opens the node's folder as a new process would.
async fn open(disk: &Disk) -> Result<(DataFolder, Stores), FolderError> {
    open_at(disk, DATA, None).await
}

async fn open_at(
    disk: &Disk,
    folder: &str,
    cluster_id: Option<ClusterId>,
) -> Result<(DataFolder, Stores), FolderError> {
    let expected = Expected { cluster_id, ..Expected::default() };
    let data = DataFolder::open_on(&disk.storage(), Path::new(folder), expected).await?;
    let stores = data.open_stores(&small_files()).await?;
    Ok((data, stores))
}

fn covering(index: u64) -> SnapshotMeta {
    let last = Some(LogId::new_term_index(1, index));
    SnapshotMeta { last_log_id: last, last_membership: StoredMembership::new(last, membership()) }
}

struct OnSimulatedDisk {
    cluster_id: ClusterId,
    built: AtomicU64,
}

impl StoreBuilder<TypeConfig, LogStore, StateMachine, (Disk, DataFolder)> for OnSimulatedDisk {
    async fn build(&self) -> Result<((Disk, DataFolder), LogStore, StateMachine), StorageError<TypeConfig>> {
        let number = self.built.fetch_add(1, Ordering::Relaxed);
        let disk = Disk::new(Seeded::new(number));
        // Two stores are told apart by their folders.
        let (data, stores) = open_at(&disk, &format!("/{number}"), Some(self.cluster_id)).await.unwrap();
        Ok(((disk, data), stores.log, StateMachine::open(stores.snapshots).unwrap()))
    }
}

/// The same contract as on files of the system.
#[test]
fn the_storage_contract_of_the_consensus_library_holds_on_a_simulated_disk() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let builder = OnSimulatedDisk { cluster_id: ClusterId::random().unwrap(), built: AtomicU64::new(0) };
    runtime.unwrap().block_on(Suite::test_all(builder)).unwrap();
}

/// Whatever is found out about damage and unfinished ends on one of the two logs holds for the other.
#[tokio::test(start_paused = true)]
async fn the_log_on_a_simulated_disk_has_the_bytes_of_the_products_log() {
    let folder = tempfile::tempdir().unwrap();
    write_every_kind_of_record(folder.path()).await;
    let disk = Disk::new(Seeded::new(1));
    let (_data, stores) = open(&disk).await.unwrap();
    log_with_every_kind_of_record(stores.log).await;

    let of_product: Vec<_> = log_files(folder.path()).iter().map(|path| fs::read(path).unwrap()).collect();
    let simulated = disk.files().into_iter().filter(|(path, _)| path.starts_with("/data/log"));
    let simulated: Vec<_> = simulated.map(|(_, content)| content).collect();

    assert!(of_product.len() > 2);
    assert_eq!(simulated, of_product);
}

/// What a seed's node had been told is on disk, and what it asked for.
#[derive(Default)]
struct Known {
    vote: u64,
    /// By index: the text that was acknowledged, unless it was taken back since.
    acknowledged: BTreeMap<u64, String>,
    /// The end of the log as it was asked for.
    last: u64,
    purged: u64,
    snapshot: u64,
    written: u64,
}

impl Known {
    /// Does one thing that a node does with its stores. `None`: the disk went away meanwhile.
    async fn step(&mut self, stores: &mut Stores, random: &mut Seeded) -> Option<()> {
        let Stores { log, snapshots } = stores;
        match random.below(12) {
            // No node has an entry before it has a vote.
            step if step == 0 || self.vote == 0 => {
                log.save_vote(&vote(self.vote + 1)).await.ok()?;
                self.vote += 1;
            }
            1 if self.last > self.purged + 2 => {
                let kept = self.last - 1;
                // From now on the entry may be there or not.
                self.acknowledged.remove(&self.last);
                log.truncate_after(Some(LogId::new_term_index(1, kept))).await.ok()?;
                self.last = kept;
            }
            2 if self.last > self.snapshot => {
                let chunks = [vec![7; random.index(9_000)], b"end".to_vec()];
                snapshots.write(covering(self.last), 3, chunks).await.ok()?;
                self.snapshot = self.last;
            }
            3 if self.snapshot > self.purged => {
                self.acknowledged.retain(|index, _| *index > self.snapshot);
                log.purge(LogId::new_term_index(1, self.snapshot)).await.ok()?;
                self.purged = self.snapshot;
            }
            _ => {
                self.written += 1;
                let text = format!("{} {}", self.written, "x".repeat(random.index(600)));
                self.last += 1;
                append(log, [entry(self.last, &text)]).await.ok()?;
                self.acknowledged.insert(self.last, text);
            }
        }
        Some(())
    }

    /// What was acknowledged is there, and the log goes on where it ends now.
    async fn check(&mut self, stores: &mut Stores, seed: u64) {
        let log = &mut stores.log;
        let found = log.vote().unwrap().map_or(0, |vote| vote.leader_id.term);
        assert!(
            found == self.vote || found == self.vote + 1,
            "seed {seed}: vote {found}, expected {}",
            self.vote
        );
        self.vote = found;
        let snapshot = stores.snapshots.newest().and_then(|newest| newest.meta().last_log_id);
        assert!(snapshot.map_or(0, |last| last.index) >= self.snapshot, "seed {seed}: a snapshot is gone");
        self.snapshot = snapshot.map_or(0, |last| last.index);
        self.purged = log.purged().unwrap().map_or(0, |id| id.index);
        let entries = log.try_get_log_entries(..).await.unwrap();
        let found: BTreeMap<u64, String> =
            entries.iter().map(|entry| (entry.log_id.index, text_of(entry))).collect();
        for (index, text) in &self.acknowledged {
            assert_eq!(found.get(index), Some(text), "seed {seed}: entry {index} is gone");
        }
        self.last = log.last().unwrap().map_or(0, |id| id.index);
        // Whoever reads the log from now on may count on what it holds.
        self.acknowledged = found;
    }
}

/// Defends S4, cases C103, C104 and C106: whatever a crash leaves of what isn't synced, in whatever part of the work, a
/// node opens, and has all that it was told is on disk; also what it found there after its process alone had died, and
/// counted on since.
#[tokio::test(start_paused = true)]
async fn what_was_acknowledged_outlives_any_crash_and_no_crash_is_taken_for_damage() {
    let mut torn = 0;
    for seed in 0..400 {
        let (mut random, disk) = (Seeded::of(seed, "test"), Disk::new(Seeded::of(seed, "disk")));
        let mut known = Known::default();
        for life in 0..6 {
            let opened = open(&disk).await;
            let (data, mut stores) =
                opened.unwrap_or_else(|error| panic!("seed {seed}, life {life}: {error}"));
            known.check(&mut stores, seed).await;
            let lives_for = Duration::from_millis(random.below(60));
            let lived = async { while known.step(&mut stores, &mut random).await.is_some() {} };
            tokio::time::timeout(lives_for, lived).await.ok();
            match random.below(4) {
                0 => disk.cut(),
                1 => drop(disk.lose_power(Loss::Torn)),
                _ => drop(disk.lose_power(Loss::Some)),
            }
            drop((data, stores));
        }
        torn += disk.counts().torn_files;
    }
    assert!(torn > 100, "only {torn} torn files: the seeds test too little");
}

/// Case C105.
#[tokio::test(start_paused = true)]
async fn a_flipped_bit_is_found_wherever_it_is() {
    for seed in 0..300 {
        let disk = Disk::new(Seeded::new(seed));
        let (data, mut stores) = open(&disk).await.unwrap();
        stores.log.save_vote(&vote(1)).await.unwrap();
        append(&mut stores.log, (1..=9).map(|index| entry(index, "text"))).await.unwrap();
        stores.snapshots.write(covering(8), 3, [vec![7; 100]]).await.unwrap();
        stores.log.purge(LogId::new_term_index(1, 6)).await.unwrap();
        stores.log.sync().await.unwrap();
        disk.cut();
        drop((data, stores));
        let part = [Part::Log, Part::Snapshots, Part::Identity][seed as usize % 3];
        let bit = disk.flip_bit(part).unwrap();

        let words = open(&disk).await.map(drop).unwrap_err().to_string();

        assert!(words.contains("rebuild this member"), "{bit}: {words}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_failed_sync_or_write_the_log_takes_nothing_more() {
    for fault in [Disk::set_failing, |disk: &Disk, _: bool| disk.set_room(Some(10))] {
        let disk = Disk::new(Seeded::new(5));
        let (_data, mut stores) = open(&disk).await.unwrap();
        stores.log.save_vote(&vote(1)).await.unwrap();
        append(&mut stores.log, [entry(1, "one")]).await.unwrap();
        fault(&disk, true);
        let failure = append(&mut stores.log, [entry(2, "two")]).await.unwrap_err().to_string();
        assert!(failure.contains("os error"), "{failure}");

        disk.set_failing(false);
        disk.set_room(None);

        assert!(append(&mut stores.log, [entry(3, "three")]).await.is_err(), "it goes on after a failure");
        assert!(stores.log.save_vote(&vote(9)).await.is_err());
        let (_data, mut stores) = open(&disk).await.unwrap();
        assert_eq!(texts(&mut stores.log).await[0], "one");
    }
}

/// The node that lives on the disk, or a new one.
async fn replica(disk: &Disk) -> Replica {
    let config =
        ReplicaConfig { snapshot_every_bytes: 4 << 10, ..ReplicaConfig::new(DATA, Member::default()) };
    let loopback = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let door = PeerDoor::bind(loopback, PeerSecurity::Plain).await.unwrap();
    let storage = disk.storage();
    let replica = if Replica::has_identity_on(&storage, Path::new(DATA)) {
        Replica::open_on(storage, config, door).await.unwrap()
    } else {
        Replica::form_on(storage, config, door, None).await.unwrap()
    };
    assert!(replica.serving(Duration::from_secs(5)).await, "the replica doesn't serve");
    replica
}

/// S4, with everything of a replica above its stores.
#[tokio::test(start_paused = true)]
async fn a_replica_keeps_what_it_granted_over_crashes_of_its_machine() {
    let disk = Disk::new(Seeded::new(3));
    let mut token = 0;
    for life in 0..5 {
        let replica = replica(&disk).await;
        assert_eq!(cluster_words::held(&replica).await.unwrap(), life * 20);
        for number in life * 20..(life + 1) * 20 {
            let granted = cluster_words::grant(&replica, number).await.unwrap().token.get();
            assert!(granted > token);
            token = granted;
        }
        disk.lose_power(Loss::Some);
        replica.stop().await;
    }
    assert!(disk.files().iter().any(|(path, _)| path.starts_with("/data/snapshots")), "no snapshot was made");
}
