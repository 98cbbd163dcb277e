//! What the tests of the log share: entries, a log to break, copies of it.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't set up its files should fail on the spot"
)]
#![allow(dead_code, reason = "each test binary uses its part")]

use bytes::Bytes;
use futures::FutureExt;
use kunci_replica::data_folder::FolderError;
use kunci_replica::log_store::{LogOptions, LogStore};
use kunci_replica::raft_types::{Entry, EntryBytes, LogId, Member, Membership, Payload, Vote};
use openraft::RaftLogReader;
use openraft::impls::leader_id_std::LeaderId;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What is done with files of the system is done when it is asked for.
pub(crate) fn at_once<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().unwrap()
}

/// An entry in term 1 that carries `text`.
pub(crate) fn entry(index: u64, text: &str) -> Entry {
    let payload = Payload::Normal(EntryBytes(Bytes::copy_from_slice(text.as_bytes())));
    Entry { log_id: LogId::new_term_index(1, index), payload }
}

/// An entry in term 1 that carries a membership of one node.
pub(crate) fn membership_entry(index: u64) -> Entry {
    Entry { log_id: LogId::new_term_index(1, index), payload: Payload::Membership(membership()) }
}

/// Node 1 alone.
pub(crate) fn membership() -> Membership {
    let member = Member { peer: "127.0.0.1:7001".into(), ..Member::default() };
    Membership::new(vec![BTreeSet::from([1])], BTreeMap::from([(1, member)])).unwrap()
}

/// A vote for node 1.
pub(crate) fn vote(term: u64) -> Vote {
    Vote { leader_id: LeaderId { term, voted_for: 1 }, committed: true }
}

/// Small files, so that a few entries fill several.
pub(crate) fn small_files() -> LogOptions {
    LogOptions { file_records_max: 6, ..LogOptions::default() }
}

pub(crate) async fn append(log: &mut LogStore, entries: impl IntoIterator<Item = Entry>) -> io::Result<()> {
    log.blocking_append(entries.into_iter().collect::<Vec<_>>()).await.map_err(io::Error::other)
}

/// The payloads of all entries, as text.
pub(crate) async fn texts(log: &mut LogStore) -> Vec<String> {
    let entries = log.try_get_log_entries(..).await.unwrap();
    entries.into_iter().map(|entry| text_of(&entry)).collect()
}

pub(crate) fn text_of(entry: &Entry) -> String {
    match &entry.payload {
        Payload::Blank => "blank".to_owned(),
        Payload::Membership(_) => "membership".to_owned(),
        Payload::Normal(bytes) => String::from_utf8(bytes.0.to_vec()).unwrap(),
    }
}

/// A log with every kind of record in it, over several files.
pub(crate) async fn write_every_kind_of_record(folder: &Path) {
    log_with_every_kind_of_record(LogStore::open(folder, &small_files()).unwrap().0).await;
}

/// The same in a log that is open.
pub(crate) async fn log_with_every_kind_of_record(mut log: LogStore) {
    log.save_vote(&vote(1)).await.unwrap();
    append(&mut log, [Entry { log_id: LogId::new_term_index(1, 0), payload: Payload::Blank }]).await.unwrap();
    append(&mut log, [membership_entry(1)]).await.unwrap();
    for index in 2..12 {
        append(&mut log, [entry(index, &format!("entry {index}"))]).await.unwrap();
    }
    log.save_committed(Some(LogId::new_term_index(1, 8))).await.unwrap();
    log.truncate_after(Some(LogId::new_term_index(1, 10))).await.unwrap();
    log.purge(LogId::new_term_index(1, 0)).await.unwrap();
    log.save_vote(&vote(2)).await.unwrap();
    log.sync().await.unwrap();
}

/// The files of the log, oldest first.
pub(crate) fn log_files(folder: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(folder).unwrap().map(|item| item.unwrap().path());
    let mut files: Vec<_> =
        names.filter(|path| path.extension().is_some_and(|suffix| suffix == "wal")).collect();
    files.sort();
    files
}

/// A copy of the files in `from`, to be damaged.
pub(crate) fn copy_of(from: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for item in fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        fs::copy(item.path(), copy.path().join(item.file_name())).unwrap();
    }
    copy
}

/// Opens a log that must be refused, and gives the reason.
pub(crate) fn refusal(folder: &Path) -> FolderError {
    match LogStore::open(folder, &small_files()) {
        Ok(_) => panic!("a damaged log was opened"),
        Err(error) => error,
    }
}
