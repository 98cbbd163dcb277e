//! A log of plain files, for a disk that the log library can't use: a simulated one.
//!
//! Owns: the library's contract and the library's bytes: one and the same log has the same files either way (a test
//! compares them), so that the look at a damaged log is the product's. Never: the product's own log; it keeps all
//! entries in memory. Next: `plain/writer.rs` puts the bytes on the disk.

#[cfg(fuzzing)]
pub(crate) mod fuzz;
mod writer;

use super::codec::{LogIdRecord, NoUserData, PayloadRecord, VoteRecord};
use super::device::{LogDevice, LogEnds};
use super::flushed::OnFlushed;
use super::scan::log_files;
use super::{LogOptions, LogTypes, payload_bytes};
use crate::data_folder::{FolderError, doing, sync_folder};
use crate::raft_types::{Entry, LogId, Vote};
use crate::storage::{Access, Files};
use codeq::{Decode, Encode};
use raft_log::{ChunkId, RaftLogAction, RaftLogRecord, RaftWalTypes, WALRecord, WalTypes, chunked_wal};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use writer::Order;

type Record = RaftLogRecord<LogTypes>;
type Checkpoint = <RaftWalTypes<LogTypes> as WalTypes>::Checkpoint;

/// Version of a checkpoint's content, as the library writes it.
const CHECKPOINT_FORMAT: u8 = 1;

/// A log of plain files.
pub(super) struct PlainLog {
    disk: Arc<dyn Files>,
    folder: PathBuf,
    records_max: usize,
    bytes_max: usize,
    state: State,
    open: OpenEnd,
    /// The files before the open one, oldest first.
    closed: VecDeque<Closed>,
    /// Files that hold only purged entries. They go once the note of the purge is on disk.
    to_remove: Vec<PathBuf>,
    writer: UnboundedSender<Order>,
}

/// What the records say, one after the other.
#[derive(Default)]
struct State {
    ends: LogEnds,
    entries: BTreeMap<u64, Entry>,
}

/// The file that is written to.
struct OpenEnd {
    start: u64,
    bytes: u64,
    records: usize,
    /// Written, and not handed to the writer yet.
    pending: Vec<u8>,
}

/// Whether a write ends with a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sync {
    Wanted,
    /// It rides along with the next one.
    NotYet,
}

struct Closed {
    path: PathBuf,
    start: u64,
    /// The last entry of the log at its end.
    last: Option<LogId>,
}

impl PlainLog {
    /// Opens the log in `folder`, which holds no unfinished record.
    pub(super) async fn open(
        disk: &Arc<dyn Files>,
        folder: &Path,
        options: &LogOptions,
    ) -> Result<Self, FolderError> {
        let mut state = State::default();
        let (mut closed, mut open) = (VecDeque::new(), None);
        for file in log_files(&**disk, folder)? {
            let bytes = disk.read(&file.path).map_err(doing("read log file", &file.path))?;
            let records = state.replay(&bytes).map_err(doing("read log file", &file.path))?;
            closed.push_back(Closed { path: file.path, start: file.start, last: state.ends.last });
            open = Some((bytes.len() as u64, records));
        }
        let (file, open) = match (open, closed.pop_back()) {
            (Some((bytes, records)), Some(Closed { path, start, .. })) => {
                let file = disk.open(&path, Access::Append).map_err(doing("open log file", &path))?;
                (file, OpenEnd { start, bytes, records, pending: Vec::new() })
            }
            _ => {
                let path = path_of(folder, 0);
                let file = disk.open(&path, Access::New).map_err(doing("make log file", &path))?;
                sync_folder(&**disk, folder).await?;
                (file, OpenEnd { start: 0, bytes: 0, records: 0, pending: Vec::new() })
            }
        };
        let writer = writer::start(Arc::clone(disk), folder.to_owned(), file);
        let mut log = Self {
            disk: Arc::clone(disk),
            folder: folder.to_owned(),
            records_max: options.file_records_max,
            bytes_max: options.file_bytes_max,
            state,
            open,
            closed,
            to_remove: Vec::new(),
            writer,
        };
        if log.open.records == 0 {
            log.write_checkpoint().map_err(doing("begin log", folder))?;
        }
        log.set_aside_purged();
        Ok(log)
    }

    fn write(&mut self, action: RaftLogAction<LogTypes>) -> io::Result<()> {
        let record = Record::Action(action);
        self.state.check(&record)?;
        self.write_record(&record)?;
        self.state.apply(record);
        if self.open.records >= self.records_max || self.open.bytes >= self.bytes_max as u64 {
            self.begin_file()?;
        }
        Ok(())
    }

    fn write_record(&mut self, record: &Record) -> io::Result<()> {
        let bytes = record.encode(&mut self.open.pending)?;
        self.open.bytes += bytes as u64;
        self.open.records += 1;
        Ok(())
    }

    fn write_checkpoint(&mut self) -> io::Result<()> {
        let checkpoint = checkpoint(&self.state.ends)?;
        self.write_record(&Record::Checkpoint(checkpoint))
    }

    /// The full file is synced before the next one gets its first record.
    fn begin_file(&mut self) -> io::Result<()> {
        self.hand_over(Sync::Wanted, None)?;
        let full = &self.open;
        let start = full.start + full.bytes;
        let (path, last) = (path_of(&self.folder, full.start), self.state.ends.last);
        self.closed.push_back(Closed { path, start: full.start, last });
        self.order(Order::Begin(self.disk.open(&path_of(&self.folder, start), Access::New)?))?;
        self.open = OpenEnd { start, bytes: 0, records: 0, pending: Vec::new() };
        self.write_checkpoint()?;
        self.hand_over(Sync::NotYet, None)?;
        self.set_aside_purged();
        Ok(())
    }

    fn set_aside_purged(&mut self) {
        let Some(purged) = self.state.ends.purged else { return };
        while let Some(oldest) = self.closed.pop_front() {
            if oldest.last > Some(purged) {
                self.closed.push_front(oldest);
                break;
            }
            self.to_remove.push(oldest.path);
        }
    }

    fn hand_over(&mut self, sync: Sync, told: Option<OnFlushed>) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.open.pending);
        self.order(Order::Write { bytes, sync, told })
    }

    fn order(&self, order: Order) -> io::Result<()> {
        let sent = self.writer.send(order);
        sent.map_err(|_| io::Error::other("the log's writer has stopped after an earlier failure"))
    }
}

impl LogDevice for PlainLog {
    fn ends(&self) -> LogEnds {
        self.state.ends
    }

    fn bytes_on_disk(&self) -> u64 {
        let first = self.closed.front().map_or(self.open.start, |oldest| oldest.start);
        self.open.start + self.open.bytes - first
    }

    fn save_vote(&mut self, vote: Vote) -> io::Result<()> {
        #[cfg(kunci_plants)]
        // The first one is kept: a node that was started before and has none doesn't start again.
        if crate::planted::is(crate::planted::Bug::VoteForgotten) && self.state.ends.vote.is_some() {
            self.state.ends.vote = Some(vote);
            return Ok(());
        }
        self.write(RaftLogAction::SaveVote(VoteRecord(vote)))
    }

    fn append(&mut self, entry: Entry) -> io::Result<()> {
        self.write(RaftLogAction::Append(LogIdRecord(entry.log_id), PayloadRecord(entry.payload)))
    }

    fn commit(&mut self, committed: LogId) -> io::Result<()> {
        self.write(RaftLogAction::Commit(LogIdRecord(committed)))
    }

    fn truncate(&mut self, first_removed: u64) -> io::Result<()> {
        let kept = self.state.before(first_removed)?;
        self.write(RaftLogAction::TruncateAfter(kept.map(LogIdRecord)))
    }

    fn purge(&mut self, upto: LogId) -> io::Result<()> {
        if upto.index < next_index(self.state.ends.purged) {
            return Ok(());
        }
        self.write(RaftLogAction::PurgeUpto(LogIdRecord(upto)))?;
        self.set_aside_purged();
        Ok(())
    }

    fn flush(&mut self, told: Option<OnFlushed>) -> io::Result<()> {
        self.hand_over(Sync::Wanted, told)?;
        if !self.to_remove.is_empty() {
            let files = std::mem::take(&mut self.to_remove);
            self.order(Order::Remove(files))?;
        }
        Ok(())
    }

    fn read(&self, from: u64, until: u64, bytes_max: u64) -> io::Result<Vec<Entry>> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for entry in self.state.entries.range(from..until.max(from)).map(|(_, entry)| entry) {
            bytes += payload_bytes(&entry.payload);
            entries.push(entry.clone());
            if bytes >= bytes_max {
                break;
            }
        }
        Ok(entries)
    }
}

impl Drop for PlainLog {
    fn drop(&mut self) {
        // As the library does when it is closed. A writer that has stopped has said so before.
        drop(self.hand_over(Sync::Wanted, None));
    }
}

impl State {
    /// Takes in all records of a file. Says how many they were.
    fn replay(&mut self, mut bytes: &[u8]) -> io::Result<usize> {
        let mut records = 0;
        while !bytes.is_empty() {
            let record = Record::decode(&mut bytes)?;
            self.check(&record)?;
            self.apply(record);
            records += 1;
        }
        Ok(records)
    }

    /// Refuses what the library refuses.
    fn check(&self, record: &Record) -> io::Result<()> {
        let LogEnds { vote, last, committed, .. } = self.ends;
        let refused = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        match record {
            WALRecord::Action(RaftLogAction::SaveVote(found)) if Some(&found.0) < vote.as_ref() => {
                refused(format!("vote {} is less than the saved one", found.0))
            }
            WALRecord::Action(RaftLogAction::Append(found, _))
                if last.is_some() && (Some(found.0) <= last || found.0.index != next_index(last)) =>
            {
                refused(format!("entry {} doesn't follow the last one", found.0))
            }
            WALRecord::Action(RaftLogAction::Commit(found))
                if Some(found.0) < committed || Some(found.0) > last =>
            {
                refused(format!("entry {} can't be the last committed one", found.0))
            }
            WALRecord::Action(RaftLogAction::TruncateAfter(found))
                if found.as_ref().map(|id| id.0) < committed =>
            {
                refused("an entry that is committed can't be taken back".to_owned())
            }
            WALRecord::Action(_) | WALRecord::Checkpoint(_) => Ok(()),
        }
    }

    fn apply(&mut self, record: Record) {
        let Self { ends, entries } = self;
        match record {
            WALRecord::Action(RaftLogAction::SaveVote(vote)) => ends.vote = Some(vote.0),
            WALRecord::Action(RaftLogAction::Append(id, payload)) => {
                ends.last = Some(id.0);
                entries.insert(id.0.index, Entry { log_id: id.0, payload: payload.0 });
            }
            WALRecord::Action(RaftLogAction::Commit(id)) => ends.committed = Some(id.0),
            WALRecord::Action(RaftLogAction::TruncateAfter(kept)) => {
                let kept = kept.map(|id| id.0);
                entries.split_off(&next_index(kept));
                ends.last = ends.last.min(kept);
            }
            WALRecord::Action(RaftLogAction::PurgeUpto(id)) => {
                *entries = entries.split_off(&(id.0.index + 1));
                ends.purged = ends.purged.max(Some(id.0));
                ends.last = ends.last.max(ends.purged);
            }
            WALRecord::Checkpoint(state) => {
                *ends = LogEnds {
                    vote: state.vote().map(|vote| vote.0),
                    last: state.last().map(|id| id.0),
                    committed: state.committed().map(|id| id.0),
                    purged: state.purged().map(|id| id.0),
                };
            }
        }
    }

    /// The entry before an index: one that is there, or the last that was purged.
    fn before(&self, index: u64) -> io::Result<Option<LogId>> {
        if index == next_index(self.ends.purged) {
            return Ok(self.ends.purged);
        }
        let before = index.checked_sub(1).and_then(|before| self.entries.get(&before));
        match before {
            Some(entry) => Ok(Some(entry.log_id)),
            None => Err(io::Error::new(io::ErrorKind::NotFound, format!("no entry before index {index}"))),
        }
    }
}

fn next_index(id: Option<LogId>) -> u64 {
    id.map_or(0, |id| id.index + 1)
}

fn path_of(folder: &Path, start: u64) -> PathBuf {
    folder.join(chunked_wal::Config::chunk_file_name(ChunkId(start)))
}

/// The library lets nobody build a checkpoint, but everybody read one.
fn checkpoint(ends: &LogEnds) -> io::Result<Checkpoint> {
    let id = |id: Option<LogId>| id.map(LogIdRecord);
    let mut bytes = vec![CHECKPOINT_FORMAT];
    ends.vote.map(VoteRecord).encode(&mut bytes)?;
    id(ends.last).encode(&mut bytes)?;
    id(ends.committed).encode(&mut bytes)?;
    id(ends.purged).encode(&mut bytes)?;
    None::<NoUserData>.encode(&mut bytes)?;
    Checkpoint::decode(&bytes[..])
}
