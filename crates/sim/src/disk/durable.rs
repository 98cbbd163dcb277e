//! What is on a disk of a node's log: what a crash of the machine couldn't take away any more.
//!
//! Owns: which entries that is, or ever was. Never: what the node says of its disk; it reads the bytes that were synced.
//! Looks only at what is new, since it is asked at every sync.

use super::Part;
use super::content::{self, Content};
use super::names::Names;
use kunci_replica::planted::{Seen, record};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Sets of voters, of each of which a majority is needed.
pub(crate) type Voters = Vec<BTreeSet<u64>>;

/// What was ever on one disk of the log.
#[derive(Default)]
pub(crate) struct Durable {
    files: BTreeMap<PathBuf, Read>,
    /// The terms of the entries of each index.
    entries: BTreeMap<u64, BTreeSet<u64>>,
    /// Every membership that was written, whether it was synced or not.
    memberships: BTreeMap<u64, Vec<Voters>>,
}

/// How far a file was read.
struct Read {
    file: Arc<Mutex<Content>>,
    rewrites: u64,
    bytes: usize,
    /// Entries that were read and aren't on the disk yet, by where they end: term and index.
    written: VecDeque<(usize, u64, u64)>,
}

impl Durable {
    /// Takes note of what is there now.
    pub(super) fn note(&mut self, names: &Names) {
        for (path, file) in names.files().filter(|(path, _)| Part::of(path) == Part::Log) {
            let content = content::lock(file);
            let fresh = || Read {
                file: Arc::clone(file),
                rewrites: content.rewrites(),
                bytes: 0,
                written: VecDeque::new(),
            };
            let read = self.files.entry(path.clone()).or_insert_with(fresh);
            if !Arc::ptr_eq(&read.file, file) || read.rewrites != content.rewrites() {
                *read = fresh();
            }
            let bytes = content.bytes();
            while let Some((seen, length)) = bytes.get(read.bytes..).and_then(record) {
                read.bytes += length;
                if let Seen::Entry { term, index, voters } = seen {
                    read.written.push_back((read.bytes, term, index));
                    if let Some(voters) = voters {
                        self.memberships.entry(index).or_default().push(voters);
                    }
                }
            }
            let synced = if names.is_on_disk(path, file) { content.synced() } else { 0 };
            while let Some((end, term, index)) = read.written.front().copied()
                && end <= synced
            {
                self.entries.entry(index).or_default().insert(term);
                read.written.pop_front();
            }
        }
    }

    /// Whether this entry was ever on the disk.
    pub(crate) fn has(&self, term: u64, index: u64) -> bool {
        self.entries.get(&index).is_some_and(|terms| terms.contains(&term))
    }

    /// Every membership that was written behind an index.
    pub(crate) fn memberships_after(&self, index: u64) -> impl Iterator<Item = &Voters> {
        self.memberships.range(index + 1..).flat_map(|(_, all)| all)
    }
}
