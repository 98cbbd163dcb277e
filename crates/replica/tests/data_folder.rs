//! A node starts as new only in a folder where nothing ever happened.

#![expect(clippy::unwrap_used, reason = "a test that can't set up its files should fail on the spot")]

mod log_store_support;

use kunci_replica::data_folder::{ClusterId, DataFolder, Expected, FolderError, Stores};
use kunci_replica::log_store::LogOptions;
use kunci_replica::raft_types::{LogId, SnapshotMeta, StoredMembership};
use log_store_support::{append, at_once, entry, log_files, membership, vote};
use openraft::storage::RaftLogStorage;
use std::fs;
use std::path::Path;

fn open(folder: &Path) -> Result<(DataFolder, Stores), FolderError> {
    let data = DataFolder::open(folder, Expected::default())?;
    let stores = at_once(data.open_stores(&LogOptions::default()))?;
    Ok((data, stores))
}

/// A node that voted, wrote three entries, made a snapshot of two and purged one.
async fn a_used_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (_data, mut stores) = open(folder.path()).unwrap();
    stores.log.save_vote(&vote(1)).await.unwrap();
    append(&mut stores.log, (1..=3).map(|index| entry(index, "text"))).await.unwrap();
    let last = Some(LogId::new_term_index(1, 2));
    let meta = SnapshotMeta { last_log_id: last, last_membership: StoredMembership::new(last, membership()) };
    stores.snapshots.write(meta, 3, [b"state"]).await.unwrap();
    stores.log.purge(LogId::new_term_index(1, 1)).await.unwrap();
    stores.log.sync().await.unwrap();
    folder
}

#[tokio::test]
async fn a_folder_keeps_its_cluster_and_node_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let nested = folder.path().join("a/b");
    let expected = Expected { node_id: Some(7), ..Expected::default() };
    let first = *DataFolder::open(&nested, expected).unwrap().identity();
    assert_eq!(first.node_id, 7);

    let second = *DataFolder::open(&nested, Expected::default()).unwrap().identity();

    assert_eq!(second, first);
    let other_node =
        DataFolder::open(&nested, Expected { node_id: Some(8), ..Expected::default() }).unwrap_err();
    assert!(matches!(other_node, FolderError::OtherNode { found: 7, expected: 8, .. }));
    let other = Expected { cluster_id: Some(ClusterId::random().unwrap()), ..Expected::default() };
    assert!(matches!(DataFolder::open(&nested, other), Err(FolderError::OtherCluster { .. })));
}

#[test]
fn a_second_process_is_refused_and_told_who_has_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let _first = DataFolder::open(folder.path(), Expected::default()).unwrap();

    let words = DataFolder::open(folder.path(), Expected::default()).unwrap_err().to_string();

    assert!(words.contains(&format!("is in use by process {}", std::process::id())), "{words}");
}

#[tokio::test]
async fn a_used_folder_opens_again() {
    let folder = a_used_folder().await;

    let (data, stores) = open(folder.path()).unwrap();

    assert!(data.identity().has_started);
    assert_eq!(stores.log.vote().unwrap(), Some(vote(1)));
    assert_eq!(stores.snapshots.newest().unwrap().meta().last_log_id, Some(LogId::new_term_index(1, 2)));
}

/// C111: the log, and with it the vote, is gone.
#[tokio::test]
async fn a_node_that_voted_refuses_to_start_without_its_vote() {
    type Loss = fn(&Path);
    let losses: [(&str, Loss); 5] = [
        ("log folder deleted", |log| fs::remove_dir_all(log).unwrap()),
        ("log file deleted", |log| fs::remove_file(&log_files(log)[0]).unwrap()),
        ("log file empty", |log| fs::write(&log_files(log)[0], b"").unwrap()),
        ("log file of zeros", |log| fs::write(&log_files(log)[0], [0; 4096]).unwrap()),
        ("log and snapshots deleted", |log| {
            fs::remove_dir_all(log).unwrap();
            fs::remove_dir_all(log.with_file_name("snapshots")).unwrap();
        }),
    ];
    for (what, lose) in losses {
        let folder = a_used_folder().await;
        lose(&folder.path().join("log"));

        let refused = open(folder.path()).map(drop).unwrap_err();

        assert!(matches!(refused, FolderError::VoteMissing { .. }), "{what}: {refused}");
        assert!(refused.to_string().contains("could vote twice"), "{refused}");
    }
}

/// C111: entries without a vote can't be.
#[tokio::test]
async fn a_log_with_entries_and_no_vote_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (data, mut stores) = open(folder.path()).unwrap();
    append(&mut stores.log, [entry(1, "text")]).await.unwrap();
    drop((data, stores));

    assert!(matches!(open(folder.path()).map(drop), Err(FolderError::VoteMissing { .. })));
}

/// C111: the identity is gone, the data isn't.
#[tokio::test]
async fn a_folder_with_data_and_no_identity_is_refused() {
    let folder = a_used_folder().await;
    fs::remove_file(folder.path().join("identity")).unwrap();
    let refused = open(folder.path()).map(drop).unwrap_err();
    assert!(matches!(refused, FolderError::IdentityMissing { .. }), "{refused}");

    fs::remove_dir_all(folder.path().join("log")).unwrap();
    let refused = open(folder.path()).map(drop).unwrap_err();
    assert!(refused.to_string().contains("holds snapshots but no identity file"), "{refused}");
}

#[tokio::test]
async fn a_damaged_identity_is_refused_at_every_bit_and_every_length() {
    let folder = a_used_folder().await;
    let file = folder.path().join("identity");
    let content = fs::read(&file).unwrap();
    let check = |changed: &[u8], what: &str| {
        fs::write(&file, changed).unwrap();
        let refused = DataFolder::open(folder.path(), Expected::default()).map(drop);
        assert!(matches!(refused, Err(FolderError::IdentityDamaged { .. })), "{what}: {refused:?}");
    };
    for bit in 0..content.len() * 8 {
        let mut flipped = content.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        check(&flipped, &format!("bit {bit}"));
    }
    for length in 0..content.len() {
        check(&content[..length], &format!("length {length}"));
    }
    fs::write(&file, &content).unwrap();
    open(folder.path()).unwrap();
}

#[test]
fn a_folder_of_a_later_version_is_refused_by_its_format() {
    let folder = tempfile::tempdir().unwrap();
    let body = "kunci data folder\nformat 2\nsomething new\n";
    let text = format!("{body}checksum {:08x}\n", crc32fast::hash(body.as_bytes()));
    fs::write(folder.path().join("identity"), text).unwrap();

    let refused = DataFolder::open(folder.path(), Expected::default()).unwrap_err();

    assert!(matches!(refused, FolderError::NewerFormat { found: 2, known: 1, .. }), "{refused}");
}

#[tokio::test]
async fn a_purged_log_whose_snapshots_are_gone_is_refused() {
    let folder = a_used_folder().await;
    fs::remove_dir_all(folder.path().join("snapshots")).unwrap();

    let refused = open(folder.path()).map(drop).unwrap_err();

    assert!(matches!(refused, FolderError::SnapshotMissing { purged: 1, .. }), "{refused}");
}
