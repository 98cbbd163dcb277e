//! What a log store writes on: the records of one log, in order.
//!
//! Owns: the contract that both logs keep, the library's and the plain one. Never: async: a write is done when it is
//! in the device's hands, and whoever needs it on disk leaves a word with a flush.

use super::codec::{LogIdRecord, PayloadRecord, VoteRecord};
use super::flushed::OnFlushed;
use super::{LogTypes, context, payload_bytes};
use crate::raft_types::{Entry, LogId, Vote};
use raft_log::RaftLog;
use raft_log::api::raft_log_writer::RaftLogWriter;
use std::io;

/// What a log says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogEnds {
    pub(super) vote: Option<Vote>,
    /// The last entry that was written and not taken back, also when it was purged.
    pub(super) last: Option<LogId>,
    pub(super) committed: Option<LogId>,
    /// The last entry that was purged.
    pub(super) purged: Option<LogId>,
}

/// The records of one log. Every change is refused if it doesn't fit what is there, and changes nothing then.
pub(super) trait LogDevice: Send {
    fn ends(&self) -> LogEnds;

    /// Bytes of all files.
    fn bytes_on_disk(&self) -> u64;

    fn save_vote(&mut self, vote: Vote) -> io::Result<()>;

    /// Writes the entry that follows the last one.
    fn append(&mut self, entry: Entry) -> io::Result<()>;

    fn commit(&mut self, committed: LogId) -> io::Result<()>;

    /// Takes back the entry at this index, which must be there or the next one, and all after it.
    fn truncate(&mut self, first_removed: u64) -> io::Result<()>;

    /// Forgets the entries up to this one.
    fn purge(&mut self, upto: LogId) -> io::Result<()>;

    /// Hands what was written to the disk. Who is named hears of it once it is there, also after a crash.
    fn flush(&mut self, told: Option<OnFlushed>) -> io::Result<()>;

    /// Entries from `from` until before `until`, up to the one that makes it `bytes_max`.
    fn read(&self, from: u64, until: u64, bytes_max: u64) -> io::Result<Vec<Entry>>;
}

impl LogDevice for RaftLog<LogTypes> {
    fn ends(&self) -> LogEnds {
        let state = self.log_state();
        let (last, purged) = (state.last().map(|id| id.0), state.purged().map(|id| id.0));
        LogEnds {
            vote: state.vote().map(|vote| vote.0),
            last: last.max(purged),
            committed: state.committed().map(|id| id.0),
            purged,
        }
    }

    fn bytes_on_disk(&self) -> u64 {
        self.on_disk_size()
    }

    fn save_vote(&mut self, vote: Vote) -> io::Result<()> {
        RaftLogWriter::save_vote(self, VoteRecord(vote)).map(drop)
    }

    fn append(&mut self, entry: Entry) -> io::Result<()> {
        RaftLogWriter::append(self, [(LogIdRecord(entry.log_id), PayloadRecord(entry.payload))]).map(drop)
    }

    fn commit(&mut self, committed: LogId) -> io::Result<()> {
        RaftLogWriter::commit(self, LogIdRecord(committed)).map(drop)
    }

    fn truncate(&mut self, first_removed: u64) -> io::Result<()> {
        RaftLogWriter::truncate(self, first_removed).map(drop)
    }

    fn purge(&mut self, upto: LogId) -> io::Result<()> {
        RaftLogWriter::purge(self, LogIdRecord(upto)).map(drop)
    }

    fn flush(&mut self, told: Option<OnFlushed>) -> io::Result<()> {
        RaftLogWriter::flush(self, true, told)
    }

    fn read(&self, from: u64, until: u64, bytes_max: u64) -> io::Result<Vec<Entry>> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        // The library's range panics when it is inverted.
        for item in RaftLog::read(self, from, until.max(from)) {
            let (log_id, payload) = item.map_err(context("read entries of the log"))?;
            bytes += payload_bytes(&payload.0);
            entries.push(Entry { log_id: log_id.0, payload: payload.0 });
            if bytes >= bytes_max {
                break;
            }
        }
        Ok(entries)
    }
}
