//! A snapshot file is whole or it isn't used, and a crash leaves the old or the new one.

#![expect(clippy::unwrap_used, reason = "a test that can't set up its files should fail on the spot")]

mod log_store_support;

use bytes::Bytes;
use kunci_replica::data_folder::{ClusterId, FolderError};
use kunci_replica::raft_types::{LogId, SnapshotMeta, StoredMembership};
use kunci_replica::snapshot_store::{SnapshotFile, SnapshotStore};
use log_store_support::{at_once, membership};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn cluster() -> ClusterId {
    "00112233445566778899aabbccddeeff".parse().unwrap()
}

fn covering(index: u64) -> SnapshotMeta {
    let last = Some(LogId::new_term_index(2, index));
    SnapshotMeta { last_log_id: last, last_membership: StoredMembership::new(last, membership()) }
}

fn open(folder: &Path, purged: Option<u64>) -> Result<SnapshotStore, FolderError> {
    SnapshotStore::open(folder, cluster(), purged)
}

fn body(snapshot: &SnapshotFile) -> io::Result<Vec<u8>> {
    let chunks: Vec<Bytes> = snapshot.chunks()?.collect::<io::Result<_>>()?;
    Ok(chunks.concat())
}

fn names(folder: &Path) -> Vec<String> {
    let items = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = items.map(|item| item.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A folder with one snapshot at index 10, and its path.
fn one_snapshot() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), None).unwrap();
    let chunks = [b"first chunk".to_vec(), vec![7; 300], b"last".to_vec()];
    let snapshot = at_once(store.write(covering(10), 3, chunks)).unwrap();
    (folder, snapshot.path().to_owned())
}

#[test]
fn what_was_written_is_read_back_after_a_restart() {
    let (folder, _) = one_snapshot();

    let newest = open(folder.path(), Some(10)).unwrap().newest().unwrap();

    assert_eq!(newest.meta(), &covering(10));
    assert_eq!(body(&newest).unwrap(), [b"first chunk".to_vec(), vec![7; 300], b"last".to_vec()].concat());
}

#[test]
fn the_newest_two_are_kept_and_an_open_handle_outlives_its_file() {
    let (folder, _) = one_snapshot();
    let store = open(folder.path(), None).unwrap();
    let oldest = store.newest().unwrap();
    at_once(store.write(covering(20), 3, [b"twenty"])).unwrap();
    at_once(store.write(covering(30), 3, [b"thirty"])).unwrap();

    assert_eq!(names(folder.path()).len(), 2);
    assert!(!oldest.path().exists());
    assert_eq!(body(&oldest).unwrap().len(), 315);
    assert_eq!(store.newest().unwrap().meta(), &covering(30));
}

#[test]
fn a_snapshot_cut_at_any_byte_is_refused_when_the_log_does_not_cover_it() {
    let (folder, path) = one_snapshot();
    let content = fs::read(&path).unwrap();
    for length in 0..content.len() {
        fs::write(&path, &content[..length]).unwrap();
        let words = open(folder.path(), Some(10)).unwrap_err().to_string();
        assert!(words.contains("damaged") && words.contains("rebuild this member"), "{length}: {words}");
    }
    fs::write(&path, [&content[..], b"x"].concat()).unwrap();
    assert!(open(folder.path(), Some(10)).is_err(), "bytes behind the trailer went unseen");
}

#[test]
fn a_flipped_bit_anywhere_in_a_snapshot_is_seen() {
    let (folder, path) = one_snapshot();
    let content = fs::read(&path).unwrap();
    for bit in 0..content.len() * 8 {
        let mut flipped = content.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &flipped).unwrap();
        assert!(open(folder.path(), Some(10)).is_err(), "bit {bit} went unseen");
    }
    fs::write(&path, &content).unwrap();
    open(folder.path(), Some(10)).unwrap();
}

#[test]
fn a_damaged_newest_snapshot_is_set_aside_while_the_log_covers_it() {
    let (folder, _) = one_snapshot();
    let newest = at_once(open(folder.path(), None).unwrap().write(covering(20), 3, [b"twenty"])).unwrap();
    let content = fs::read(newest.path()).unwrap();
    fs::write(newest.path(), &content[..content.len() - 1]).unwrap();

    assert!(matches!(open(folder.path(), Some(11)), Err(FolderError::SnapshotMissing { .. })));
    let store = open(folder.path(), Some(10)).unwrap();

    assert_eq!(store.newest().unwrap().meta(), &covering(10));
    assert!(names(folder.path()).iter().any(|name| name.ends_with(".kunci.damaged")));
}

#[test]
fn a_purged_log_without_a_snapshot_is_refused() {
    let folder = tempfile::tempdir().unwrap();

    let words = open(folder.path(), Some(5)).unwrap_err().to_string();

    assert!(
        words.contains("the log begins after index 5") && words.contains("there is no snapshot"),
        "{words}"
    );
}

/// C106: leftovers of a crash before the rename.
#[test]
fn half_written_files_of_a_crash_are_removed_at_open() {
    let (folder, _) = one_snapshot();
    fs::write(folder.path().join("incoming-3.tmp"), b"KUNCISNP half").unwrap();

    let store = open(folder.path(), None).unwrap();

    assert_eq!(names(folder.path()).len(), 1);
    assert_eq!(store.newest().unwrap().meta(), &covering(10));
}

#[test]
fn a_snapshot_of_another_cluster_is_refused() {
    let (folder, _) = one_snapshot();

    let refused = SnapshotStore::open(folder.path(), ClusterId::random().unwrap(), None).unwrap_err();

    assert!(refused.to_string().contains("belongs to cluster 00112233445566778899aabbccddeeff"), "{refused}");
}

/// A later version's snapshot isn't damage, and isn't set aside.
#[test]
fn a_snapshot_of_a_later_format_is_refused_and_left_alone() {
    let (folder, path) = one_snapshot();
    let mut content = fs::read(&path).unwrap();
    content[11] = 2;
    let header = 16 + u32::from_be_bytes(content[12..16].try_into().unwrap()) as usize;
    let checksum = crc32fast::hash(&content[..header]).to_be_bytes();
    content[header..header + 4].copy_from_slice(&checksum);
    fs::write(&path, &content).unwrap();

    let words = open(folder.path(), None).unwrap_err().to_string();

    assert!(words.contains("it has format 2, this version reads format 1"), "{words}");
    assert!(path.exists());
}

#[test]
fn a_snapshot_received_in_pieces_counts_once_it_is_whole_and_kept() {
    let (_from, path) = one_snapshot();
    let content = fs::read(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), None).unwrap();

    let mut broken = store.receive().unwrap();
    broken.take(0, &content[..100]).unwrap();
    assert!(broken.take(50, &content[50..]).is_err(), "a piece at a wrong offset was taken");
    assert!(at_once(broken.finish()).is_err(), "half a snapshot was taken for a whole one");
    assert_eq!(names(folder.path()), Vec::<String>::new(), "a refused one leaves nothing behind");

    let mut receiver = store.receive().unwrap();
    for piece in content.chunks(100) {
        receiver.take(receiver.received(), piece).unwrap();
    }
    let received = at_once(receiver.finish()).unwrap();
    assert!(store.newest().is_none(), "it counts before it is installed");
    at_once(store.keep(received)).unwrap();

    assert_eq!(store.newest().unwrap().meta(), &covering(10));
    assert_eq!(fs::read(store.newest().unwrap().path()).unwrap(), content);
}
