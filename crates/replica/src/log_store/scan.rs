//! Looks at a log before it is opened, and tells an unfinished end from damage.
//!
//! Owns: reading every record of every file, the verdict on what can't be read, and the cut behind the last
//! whole record. Never: opening the log.
//!
//! The log library (raft-log 0.4.6) decides by the kind of error alone: a record that runs past the end of
//! the last file is cut, one with a wrong checksum is refused. That can cut acknowledged entries when a type
//! or a length is damaged, and refuses to start after a crash that left a record half written and half zero.
//! So we judge ourselves, with the library's own cut switched off:
//!
//! - *unfinished*: nothing whole follows, and the record is short, or its end (or a whole page of it) is
//!   zeros, which is what a crash leaves when a file's length reached the disk before its bytes. It was never
//!   acknowledged, because an acknowledgement needs the whole record on disk. It is cut.
//! - *damage*: everything else, also a last record of full length with a wrong checksum. It may have been
//!   acknowledged, so cutting it could lose what a client was promised. The log refuses to open.

use super::LogTypes;
use super::codec::{ENTRY_PREFIX_BYTES, PAYLOAD_HEADER_BYTES, PayloadHeader, RECORD_CHECKSUM_BYTES};
use crate::data_folder::{FolderError, doing, sync_folder};
use crate::storage::{Access, Files};
use codeq::Decode;
use raft_log::RaftLogRecord;
use raft_log::chunked_wal;
use std::io;
use std::path::{Path, PathBuf};

/// The piece in which file systems put data on disk.
const PAGE_BYTES: usize = 4096;
/// Records whose length isn't protected by a header checksum are shorter than this.
const SHORT_RECORD_BYTES_MAX: usize = 256;
const APPEND_RECORD_TYPE: u32 = 1;
const RECORD_TYPE_MAX: u32 = 5;

/// What a look at the log's files found.
#[derive(Debug)]
pub(crate) struct LogScan {
    /// Whole records in all files.
    pub(crate) records: u64,
    /// Files of the log.
    pub(crate) files: usize,
    /// Unfinished ends, last file first. Usually none or one; a second one when a crash also left a newly
    /// begun file without its first record.
    pub(crate) unfinished: Vec<UnfinishedEnd>,
}

/// The unfinished last record of a log, as a crash in the middle of a write leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedEnd {
    /// The file that ends with it.
    pub file: PathBuf,
    /// Bytes of the whole records before it; 0 means that the file holds nothing else and is removed.
    pub whole_bytes: u64,
    /// Bytes that belong to no whole record.
    pub cut_bytes: u64,
}

/// A file of the log.
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    /// How many bytes of the log came before it.
    pub(super) start: u64,
}

/// What is in one file.
pub(super) struct FileScan {
    pub(super) records: u64,
    pub(super) whole_bytes: u64,
    file_bytes: u64,
    pub(super) end: End,
}

/// How a file ends.
pub(super) enum End {
    Whole,
    Unfinished,
    Damaged(String),
}

impl LogScan {
    /// Reads all files of the log in `folder`. Changes nothing.
    pub(crate) fn of(disk: &dyn Files, folder: &Path) -> Result<Self, FolderError> {
        let mut files = log_files(disk, folder)?;
        let mut scan = Self { records: 0, files: files.len(), unfinished: Vec::new() };
        let mut expected_end = None;
        // Backwards, because only the end may be unfinished, and what the end is depends on the files after.
        while let Some(file) = files.pop() {
            let found = scan_file(disk, &file)?;
            let is_end = expected_end.is_none();
            match found.end {
                End::Damaged(what) => return Err(damage(&file, found.whole_bytes, what)),
                End::Unfinished if is_end && (found.records > 0 || file.start == 0 || !files.is_empty()) => {
                    scan.unfinished.push(UnfinishedEnd {
                        file: file.path.clone(),
                        whole_bytes: found.whole_bytes,
                        cut_bytes: found.file_bytes - found.whole_bytes,
                    });
                }
                End::Unfinished => {
                    return Err(damage(
                        &file,
                        found.whole_bytes,
                        "the file ends in the middle of a record".into(),
                    ));
                }
                End::Whole => {}
            }
            scan.records += found.records;
            if let Some(next_start) = expected_end
                && file.start + found.whole_bytes != next_start
            {
                let what = format!(
                    "the next file begins at {next_start}, expected {}",
                    file.start + found.whole_bytes
                );
                return Err(damage(&file, found.whole_bytes, what));
            }
            // A file without any whole record is taken away, so that the one before it is the end.
            if found.whole_bytes > 0 {
                expected_end = Some(file.start);
            }
        }
        Ok(scan)
    }

    /// Cuts the unfinished ends, and returns when the cut is on disk. Whole records stay.
    pub(crate) async fn cut_unfinished(&self, disk: &dyn Files, folder: &Path) -> Result<(), FolderError> {
        for end in &self.unfinished {
            let path = &end.file;
            if end.whole_bytes == 0 {
                disk.remove(path).map_err(doing("remove unfinished log file", path))?;
                continue;
            }
            let file = disk.open(path, Access::Append).map_err(doing("open log file", path))?;
            file.cut(end.whole_bytes).map_err(doing("cut log file", path))?;
            file.sync_all().await.map_err(doing("sync log file", path))?;
        }
        if self.unfinished.is_empty() { Ok(()) } else { sync_folder(disk, folder).await }
    }
}

/// Makes everything that can be read of a log durable.
///
/// A process that is killed between a write and its sync leaves records that only the page cache holds. The next one
/// finds them, and whoever reads the log counts on them: a vote isn't given again, an entry isn't asked for again.
/// Without this a power cut soon after would take them away. Older files were synced before the newest got a record.
pub(crate) async fn settle(disk: &dyn Files, folder: &Path) -> Result<(), FolderError> {
    if let Some(LogFile { path, .. }) = log_files(disk, folder)?.pop() {
        let file = disk.open(&path, Access::Append).map_err(doing("open log file", &path))?;
        file.sync_all().await.map_err(doing("sync log file", &path))?;
    }
    sync_folder(disk, folder).await
}

/// The files of the log in `folder`, oldest first.
pub(super) fn log_files(disk: &dyn Files, folder: &Path) -> Result<Vec<LogFile>, FolderError> {
    let mut files = Vec::new();
    for path in disk.list(folder).map_err(doing("list log folder", folder))? {
        let name = path.file_name().unwrap_or_default();
        if let Ok(start) = chunked_wal::Config::parse_chunk_file_name(&name.to_string_lossy()) {
            files.push(LogFile { path, start });
        }
    }
    files.sort_by_key(|file| file.start);
    Ok(files)
}

/// Whether `folder` holds any file of a log.
pub(crate) fn has_log(disk: &dyn Files, folder: &Path) -> Result<bool, FolderError> {
    Ok(disk.exists(folder) && !log_files(disk, folder)?.is_empty())
}

fn damage(file: &LogFile, at: u64, what: String) -> FolderError {
    FolderError::LogDamaged { file: file.path.clone(), at, what }
}

fn scan_file(disk: &dyn Files, file: &LogFile) -> Result<FileScan, FolderError> {
    // A file is bounded by the size at which the log begins a new one, so it is read in one piece.
    let bytes = disk.read(&file.path).map_err(doing("read log file", &file.path))?;
    Ok(look_at(&bytes))
}

/// Reads the records of one file.
pub(super) fn look_at(bytes: &[u8]) -> FileScan {
    let (mut at, mut records) = (0, 0);
    let end = loop {
        if at == bytes.len() {
            // An empty file was begun and has no first record yet.
            break if at == 0 { End::Unfinished } else { End::Whole };
        }
        match record_bytes(&bytes[at..]) {
            Ok(length) => (at, records) = (at + length, records + 1),
            Err(error) => break judge(bytes, at, &error),
        }
    };
    FileScan { records, whole_bytes: at as u64, file_bytes: bytes.len() as u64, end }
}

/// The length of the whole record at the start of `bytes`.
fn record_bytes(bytes: &[u8]) -> io::Result<usize> {
    let mut rest = bytes;
    RaftLogRecord::<LogTypes>::decode(&mut rest)?;
    Ok(bytes.len() - rest.len())
}

fn judge(file: &[u8], at: usize, error: &io::Error) -> End {
    let tail = &file[at..];
    if tail.iter().all(|byte| *byte == 0) || is_short_entry(tail) {
        return End::Unfinished;
    }
    if let Some(next) =
        (1..tail.len()).find(|next| may_be_record(&tail[*next..]) && record_bytes(&tail[*next..]).is_ok())
    {
        return End::Damaged(format!("{error}; a whole record follows at byte {}", at + next));
    }
    let runs_out = error.kind() == io::ErrorKind::UnexpectedEof;
    if runs_out && !is_one_bit_from_whole(tail) || ends_in_zeros(tail) || has_zero_page(file, at) {
        return End::Unfinished;
    }
    End::Damaged(format!("{error}; the record has its full length"))
}

/// Whether this is the beginning of an entry whose header is sound and asks for more than is there.
fn is_short_entry(tail: &[u8]) -> bool {
    let header = tail.get(ENTRY_PREFIX_BYTES..).and_then(<[u8]>::first_chunk::<PAYLOAD_HEADER_BYTES>);
    let (Some(kind), Some(header)) = (tail.first_chunk::<4>(), header) else { return false };
    let Ok(header) = PayloadHeader::parse(header) else { return false };
    let whole = ENTRY_PREFIX_BYTES + PAYLOAD_HEADER_BYTES + header.body_bytes + RECORD_CHECKSUM_BYTES;
    u32::from_be_bytes(*kind) == APPEND_RECORD_TYPE && tail.len() < whole
}

fn may_be_record(bytes: &[u8]) -> bool {
    bytes.first_chunk::<4>().is_some_and(|kind| u32::from_be_bytes(*kind) <= RECORD_TYPE_MAX)
}

/// A flipped bit in a record's type (or in a mark that something is there) can make a whole last record look
/// short. Flip each bit back: what then is a whole record that ends with the file was whole all along.
fn is_one_bit_from_whole(tail: &[u8]) -> bool {
    if tail.len() > SHORT_RECORD_BYTES_MAX {
        return false;
    }
    let mut bytes = tail.to_vec();
    (0..bytes.len() * 8).any(|bit| {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let is_whole = record_bytes(&bytes).is_ok_and(|length| length == bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        is_whole
    })
}

/// Whether the record's end was never written. Four bytes, the whole checksum: fewer zeros can be a sound
/// checksum's last bytes, and a disk doesn't write pieces that small.
fn ends_in_zeros(tail: &[u8]) -> bool {
    tail.last_chunk::<4>().is_some_and(|end| *end == [0; 4])
}

/// Whether a whole page inside the record was never written.
fn has_zero_page(file: &[u8], at: usize) -> bool {
    let first = at.next_multiple_of(PAGE_BYTES).min(file.len());
    file[first..].chunks_exact(PAGE_BYTES).any(|page| page.iter().all(|byte| *byte == 0))
}
