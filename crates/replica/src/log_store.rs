//! The replicated log and the vote, on disk.
//!
//! Owns: the one writer of `DATA/log`, its settings, and the promise that what was reported as flushed is on
//! disk. Never: the meaning of an entry; the state machine; snapshots. Next: `log_store/scan.rs` looks at the
//! files before they are opened, `log_store/codec.rs` says what a record looks like.
//!
//! The library below (raft-log) syncs the folder when it begins or removes a file, syncs a full file before
//! it writes the first record of the next one, and stops for good when a write or a sync fails. Every error
//! from here is fatal to the node: the process ends with a message, and a restart recovers.

mod codec;
mod device;
mod flushed;
pub(crate) mod plain;
pub(crate) mod scan;
#[cfg(kunci_plants)]
pub(crate) mod seen;

use crate::data_folder::{FolderError, Started, doing};
use crate::disk::Syncs;
use crate::raft_types::{Entry, LogId, Payload, TypeConfig, Vote};
use crate::storage::{LogKind, Storage, at_once};
use codec::{LogIdRecord, NoUserData, PayloadRecord, VoteRecord};
use device::{LogDevice, LogEnds};
pub(crate) use flushed::OnFlushed;
use flushed::Waiting;
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::{OptionalSend, RaftLogReader};
use plain::PlainLog;
use raft_log::{Config, RaftLog};
use scan::LogScan;
pub use scan::UnfinishedEnd;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;
use tokio::sync::oneshot;

/// How the log uses memory and disk.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// A file of the log ends at this size. Entries of the newest file are all kept in memory, so this is
    /// also the floor of the cache: 4 MiB of each, and not more, keep a node's cache under 8 MiB. Removing a file
    /// keeps the log's writer from its syncs, and the longer the larger it is.
    pub file_bytes_max: usize,
    /// A file of the log ends at this many records.
    pub file_records_max: usize,
    /// Entries of older files are kept in memory up to this size.
    pub cache_bytes_max: usize,
    /// Entries of older files are kept in memory up to this number.
    pub cache_entries_max: usize,
    /// How long a sync waits for more writes to join it, besides those that wait already. Every commit pays it, and some
    /// 50 µs more where it is long enough for the writer to sleep. 0 turns group commit off; the library's default is 1 ms.
    pub flush_wait: Duration,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            file_bytes_max: 4 << 20,
            file_records_max: 50_000,
            cache_bytes_max: 4 << 20,
            cache_entries_max: 50_000,
            flush_wait: Duration::from_micros(5),
        }
    }
}

/// Reading a file from its start, for replay.
const READ_BUFFER_BYTES: usize = 1 << 20;
/// Written but not yet on disk; a writer waits beyond that.
const FLUSH_QUEUE_BYTES_MAX: usize = 16 << 20;
/// One read gives back about this much, so that a follower far behind doesn't cost the memory of a whole log.
const READ_BYTES_MAX: u64 = 4 << 20;

/// The log and the vote of one node. A clone is another handle to the same log; the last one to go closes it.
#[derive(Clone)]
pub struct LogStore {
    log: Arc<Mutex<Box<dyn LogDevice>>>,
    started: Option<Arc<Started>>,
    syncs: Syncs,
}

/// The log library's types, filled in with our records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogTypes;

impl raft_log::Types for LogTypes {
    type LogId = LogIdRecord;
    type LogPayload = PayloadRecord;
    type Vote = VoteRecord;
    type Callback = OnFlushed;
    type UserData = NoUserData;

    fn log_index(log_id: &LogIdRecord) -> u64 {
        log_id.0.index
    }

    fn payload_size(payload: &PayloadRecord) -> u64 {
        payload_bytes(&payload.0)
    }
}

fn payload_bytes(payload: &Payload) -> u64 {
    /// A map slot and a log id beside the payload, about.
    const FIXED_BYTES: u64 = 128;
    match payload {
        Payload::Normal(entry) => FIXED_BYTES + entry.0.len() as u64,
        Payload::Blank | Payload::Membership(_) => FIXED_BYTES,
    }
}

impl LogStore {
    /// Opens the log in `folder`, which must exist and be locked by this process. Cuts an unfinished last
    /// record and says so; refuses a damaged log.
    pub fn open(folder: &Path, options: &LogOptions) -> Result<(Self, Vec<UnfinishedEnd>), FolderError> {
        at_once(Self::open_on(&Storage::system(), folder, options))
    }

    /// As [`LogStore::open`], on any storage.
    pub async fn open_on(
        storage: &Storage,
        folder: &Path,
        options: &LogOptions,
    ) -> Result<(Self, Vec<UnfinishedEnd>), FolderError> {
        let files = storage.files();
        let scan = LogScan::of(&**files, folder)?;
        scan.cut_unfinished(&**files, folder).await?;
        scan::settle(&**files, folder).await?;
        for end in &scan.unfinished {
            tracing::warn!(file = %end.file.display(), whole_bytes = end.whole_bytes, cut_bytes = end.cut_bytes,
                "cut an unfinished last record of the log, which no acknowledgement covers");
        }
        let log: Box<dyn LogDevice> = match storage.log_kind() {
            LogKind::Library => Box::new(open_library(folder, options)?),
            LogKind::Plain => Box::new(PlainLog::open(files, folder, options).await?),
        };
        let store = Self { log: Arc::new(Mutex::new(log)), started: None, syncs: Syncs::default() };
        Ok((store, scan.unfinished))
    }

    /// Notes in the folder's identity that a vote was given, once the first one is on disk.
    pub(crate) fn with_started(mut self, started: Started) -> Self {
        self.started = Some(Arc::new(started));
        self
    }

    /// The syncs that are under way.
    pub(crate) fn syncs(&self) -> Syncs {
        self.syncs.clone()
    }

    /// The last vote that was given. `None` in a log that was never used.
    pub fn vote(&self) -> io::Result<Option<Vote>> {
        Ok(self.ends()?.vote)
    }

    /// The last entry, also when it was purged.
    pub fn last(&self) -> io::Result<Option<LogId>> {
        Ok(self.ends()?.last)
    }

    /// The last entry that was purged because a snapshot covers it.
    pub fn purged(&self) -> io::Result<Option<LogId>> {
        Ok(self.ends()?.purged)
    }

    /// A look at the log's size that doesn't keep the log open.
    pub(crate) fn size(&self) -> LogSize {
        LogSize { log: Arc::downgrade(&self.log), seen: AtomicU64::new(0) }
    }

    /// Bytes of the log's files.
    pub fn bytes_on_disk(&self) -> io::Result<u64> {
        Ok(self.lock()?.bytes_on_disk())
    }

    fn ends(&self) -> io::Result<LogEnds> {
        Ok(self.lock()?.ends())
    }

    /// Returns when everything written so far is on disk. For a graceful stop.
    pub async fn sync(&self) -> io::Result<()> {
        self.write_synced("sync the log", |_| Ok(())).await
    }

    fn lock(&self) -> io::Result<MutexGuard<'_, Box<dyn LogDevice>>> {
        self.log
            .lock()
            .map_err(|_| io::Error::other("use the log: a thread died while it was changing the log"))
    }

    /// Writes, and returns when that and everything before it is on disk.
    async fn write_synced(
        &self,
        what: &'static str,
        write: impl FnOnce(&mut dyn LogDevice) -> io::Result<()> + Send,
    ) -> io::Result<()> {
        let (sender, on_disk) = oneshot::channel();
        {
            let mut log = self.lock()?;
            write(&mut **log).map_err(context(what))?;
            log.flush(Some(OnFlushed::begin(Waiting::Caller(sender), &self.syncs))).map_err(context(what))?;
        }
        match on_disk.await {
            Ok(result) => result.map_err(context(what)),
            Err(_) => Err(io::Error::other(format!("{what}: the log's writer has stopped"))),
        }
    }

    fn read(&self, from: u64, until: u64, bytes_max: u64) -> io::Result<Vec<Entry>> {
        self.lock()?.read(from, until, bytes_max)
    }
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry>, io::Error> {
        let from = match range.start_bound() {
            Bound::Included(first) => *first,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let until = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        self.read(from, until, u64::MAX)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        self.vote()
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, io::Error> {
        self.read(start, end, READ_BYTES_MAX)
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        let LogEnds { last, purged, .. } = self.ends()?;
        Ok(LogState { last_log_id: last, last_purged_log_id: purged })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    /// A vote that is forgotten can be given twice, so it is on disk before anybody hears of it.
    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        self.write_synced("save the vote in the log", |log| log.save_vote(*vote)).await?;
        match &self.started {
            Some(started) => started.note().await.map_err(io::Error::other),
            None => Ok(()),
        }
    }

    /// Not synced, because it only saves work: entries up to it are applied at the next start without
    /// waiting for a leader. It goes to the disk with whatever is written next: a write of its own would cost every commit
    /// two more wake-ups of the writer.
    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        let mut log = self.lock()?;
        // The library refuses one beyond the last entry, which an installed snapshot can bring, and one that
        // goes back. Both are not worth ending the process for.
        let ends = log.ends();
        let Some(committed) = committed.filter(|_| committed <= ends.last && committed > ends.committed)
        else {
            return Ok(());
        };
        log.commit(committed).map_err(context("note the committed index in the log"))
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(self.ends()?.committed)
    }

    async fn append<I>(&mut self, entries: I, flushed: IOFlushed<TypeConfig>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut log = self.lock()?;
        for entry in entries {
            log.append(entry).map_err(context("append entries to the log"))?;
        }
        #[cfg(kunci_plants)]
        if crate::planted::acknowledges_before_sync() {
            log.flush(None).map_err(context("flush the log"))?;
            flushed.io_completed(Ok(()));
            return Ok(());
        }
        log.flush(Some(OnFlushed::begin(Waiting::Raft(flushed), &self.syncs)))
            .map_err(context("flush the log"))
    }

    /// Synced before it returns: an entry that was taken back must not come back after a crash, in front of
    /// what replaces it.
    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        let first_removed = last.map_or(0, |last| last.index + 1);
        // Past the end there is nothing to do. The library makes that an error.
        if self.last()?.is_none_or(|last| last.index < first_removed) {
            return Ok(());
        }
        self.write_synced("take back entries of the log", |log| log.truncate(first_removed)).await
    }

    /// The library removes a file only after the note of the purge is on disk.
    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        let mut log = self.lock()?;
        log.purge(upto).map_err(context("purge the log"))?;
        log.flush(None).map_err(context("purge the log"))
    }
}

/// A look at a log's size.
pub(crate) struct LogSize {
    log: Weak<Mutex<Box<dyn LogDevice>>>,
    seen: AtomicU64,
}

impl LogSize {
    /// Bytes of the log's files. Never waits: while the log is being written, this is what was seen last.
    pub(crate) fn bytes(&self) -> u64 {
        if let Some(log) = self.log.upgrade()
            && let Ok(log) = log.try_lock()
        {
            self.seen.store(log.bytes_on_disk(), Ordering::Relaxed);
        }
        self.seen.load(Ordering::Relaxed)
    }
}

fn open_library(folder: &Path, options: &LogOptions) -> Result<RaftLog<LogTypes>, FolderError> {
    let mut config = Config::new(folder.display());
    config.wal.flush_batch_wait = Some(options.flush_wait);
    config.wal.chunk_max_size = Some(options.file_bytes_max);
    config.wal.chunk_max_records = Some(options.file_records_max);
    config.wal.read_buffer_size = Some(READ_BUFFER_BYTES);
    config.wal.flush_queue_max_bytes = Some(FLUSH_QUEUE_BYTES_MAX);
    // Its own cut can't tell a damaged length from an unfinished record; ours ran already.
    config.wal.truncate_incomplete_record = Some(false);
    config.log_cache_max_items = Some(options.cache_entries_max);
    config.log_cache_capacity = Some(options.cache_bytes_max);
    RaftLog::open(Arc::new(config)).map_err(doing("open log", folder))
}

fn context(what: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}
