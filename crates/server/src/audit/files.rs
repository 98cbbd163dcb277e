//! The files: one that is written, and older ones that were put aside.
//!
//! Owns: their names, when one is put aside, and which are let go. Never: what is in a line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The file that is written.
pub const CURRENT: &str = "audit.jsonl";
const PREFIX: &str = "audit-";
/// So much is written before it is synced. Tens of megabytes at once kept the log of the locks, where it is on the same
/// disk, from syncing for over 100 ms.
const UNSYNCED_BYTES_MAX: u64 = 1 << 20;
const SUFFIX: &str = ".jsonl";

/// One file of an audit log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its number; the one that is written is behind them all.
    pub number: u64,
    /// Where it is.
    pub path: PathBuf,
}

/// The files in a folder, oldest first.
///
/// # Errors
/// When the folder can't be read.
pub fn files_of(folder: &Path) -> io::Result<Vec<Place>> {
    let mut places = put_aside(folder)?;
    let current = folder.join(CURRENT);
    if current.exists() {
        places.push(Place { number: u64::MAX, path: current });
    }
    Ok(places)
}

/// `audit-<number>-<when it was put aside>.jsonl`; the number counts, since the clock may jump.
fn put_aside(folder: &Path) -> io::Result<Vec<Place>> {
    let mut places = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_suffix(SUFFIX))
            .and_then(|rest| rest.split('-').next()?.parse().ok());
        if let Some(number) = number {
            places.push(Place { number, path });
        }
    }
    places.sort();
    Ok(places)
}

/// The file that is written, open.
#[derive(Debug)]
pub(super) struct Current {
    folder: PathBuf,
    file: File,
    bytes: u64,
    unsynced: u64,
}

impl Current {
    /// Opens the file behind what is in it, or makes it; only its owner may read it.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let file =
            OpenOptions::new().create(true).append(true).read(true).mode(0o640).open(folder.join(CURRENT))?;
        let bytes = file.metadata()?.len();
        Ok(Self { folder: folder.to_owned(), file, bytes, unsynced: 0 })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Takes away what is behind the last whole line.
    pub(super) fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)?;
        self.bytes = bytes;
        Ok(())
    }

    /// Writes some of the bytes, as the disk takes them; says how many.
    pub(super) fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self.file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            written => written?,
        };
        self.bytes += written as u64;
        self.unsynced += written as u64;
        Ok(written)
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.unsynced = 0;
        self.file.sync_data()
    }

    /// Syncs what has gathered, so that it never becomes much.
    pub(super) fn sync_in_time(&mut self) -> io::Result<()> {
        if self.unsynced < UNSYNCED_BYTES_MAX { Ok(()) } else { self.sync() }
    }

    /// Puts the file aside, and begins another one.
    pub(super) fn put_aside(self, when: &str) -> io::Result<Self> {
        // What is said to be recorded must be there also after a power cut, as far as the disk can tell now.
        let _ = self.file.sync_data();
        let number = put_aside(&self.folder)?.last().map_or(1, |place| place.number.saturating_add(1));
        let name = format!("{PREFIX}{number:08}-{}{SUFFIX}", when.replace(':', ""));
        fs::rename(self.folder.join(CURRENT), self.folder.join(name))?;
        Self::open(&self.folder)
    }
}

/// Lets the oldest files go until those that are put aside have at most `bytes_max` together.
pub(super) fn keep(folder: &Path, bytes_max: u64) -> io::Result<()> {
    let places = put_aside(folder)?;
    let sizes: Vec<u64> =
        places.iter().map(|place| fs::metadata(&place.path).map_or(0, |data| data.len())).collect();
    let mut bytes: u64 = sizes.iter().sum();
    for (place, size) in places.iter().zip(sizes) {
        if bytes <= bytes_max {
            break;
        }
        fs::remove_file(&place.path)?;
        bytes -= size;
    }
    Ok(())
}

/// Lets the oldest file that was put aside go, if there is one.
pub(super) fn let_one_go(folder: &Path) -> io::Result<Option<PathBuf>> {
    let Some(oldest) = put_aside(folder)?.into_iter().next() else { return Ok(None) };
    fs::remove_file(&oldest.path)?;
    Ok(Some(oldest.path))
}

/// Whether two folders are on one disk; that they are when it can't be seen.
pub(super) fn on_one_disk(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.dev() == other.dev(),
        _ => true,
    }
}

/// Bytes that may still be written to the disk under a folder.
pub(super) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}
