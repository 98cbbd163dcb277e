//! The log keeps openraft's storage contract, together with a state machine over our snapshot files.

#![expect(clippy::unwrap_used, reason = "a test that can't set up its files should fail on the spot")]

mod log_store_support;

use kunci_replica::StateMachine;
use kunci_replica::data_folder::ClusterId;
use kunci_replica::log_store::{LogOptions, LogStore};
use kunci_replica::raft_types::{LogId, TypeConfig};
use kunci_replica::snapshot_store::SnapshotStore;
use log_store_support::{append, entry, texts, vote};
use openraft::storage::RaftLogStorage;
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::{RaftLogReader, StorageError};
use tempfile::TempDir;

struct InTemporaryFolder(ClusterId);

impl StoreBuilder<TypeConfig, LogStore, StateMachine, (TempDir, TempDir)> for InTemporaryFolder {
    async fn build(&self) -> Result<((TempDir, TempDir), LogStore, StateMachine), StorageError<TypeConfig>> {
        let (log, snapshots) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (store, _) = LogStore::open(log.path(), &LogOptions::default()).unwrap();
        let snapshot_store = SnapshotStore::open(snapshots.path(), self.0, None).unwrap();
        Ok(((log, snapshots), store, StateMachine::open(snapshot_store).unwrap()))
    }
}

#[test]
fn the_storage_contract_of_the_consensus_library_holds() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let builder = InTemporaryFolder(ClusterId::random().unwrap());
    runtime.block_on(Suite::test_all(builder)).unwrap();
}

#[tokio::test]
async fn vote_entries_and_purge_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = LogStore::open(folder.path(), &LogOptions::default()).unwrap();
    log.save_vote(&vote(3)).await.unwrap();
    append(&mut log, (1..=5).map(|index| entry(index, &format!("entry {index}")))).await.unwrap();
    log.save_committed(Some(LogId::new_term_index(1, 4))).await.unwrap();
    log.purge(LogId::new_term_index(1, 2)).await.unwrap();
    drop(log);

    let (mut log, cut) = LogStore::open(folder.path(), &LogOptions::default()).unwrap();

    assert_eq!(cut, []);
    assert_eq!(log.vote().unwrap(), Some(vote(3)));
    assert_eq!(log.purged().unwrap(), Some(LogId::new_term_index(1, 2)));
    assert_eq!(log.read_committed().await.unwrap(), Some(LogId::new_term_index(1, 4)));
    assert_eq!(texts(&mut log).await, ["entry 3", "entry 4", "entry 5"]);
}

#[tokio::test]
async fn taking_back_past_the_end_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = LogStore::open(folder.path(), &LogOptions::default()).unwrap();
    append(&mut log, [entry(1, "one")]).await.unwrap();

    log.truncate_after(Some(LogId::new_term_index(1, 9))).await.unwrap();

    assert_eq!(texts(&mut log).await, ["one"]);
}

#[tokio::test]
async fn one_read_gives_back_a_bounded_number_of_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = LogStore::open(folder.path(), &LogOptions::default()).unwrap();
    let megabyte = "x".repeat(1 << 20);
    append(&mut log, (1..=12).map(|index| entry(index, &megabyte))).await.unwrap();

    let entries = log.limited_get_log_entries(1, 13).await.unwrap();

    assert!((1..=5).contains(&entries.len()), "{} entries of 1 MiB", entries.len());
}
