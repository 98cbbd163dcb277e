//! The file of a durable gate, as it grows.
//!
//! Owns: what is on disk for certain, what a failure means for what follows, and when the file is written anew. Never:
//! compares tokens.

use super::OpenError;
use super::folder::{Folder, doing};
use super::frame::{self, Body, Fault, HEADER_BYTES};
use crate::gate::kept::Kept;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// A file isn't written anew before this much was appended.
const APPENDED_BYTES_MIN: u64 = 4 << 20;

/// What a log needs of a file.
pub(super) trait Medium: Send {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Returns once everything written is on disk.
    fn sync(&mut self) -> io::Result<()>;
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Medium for File {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// Why records aren't on disk.
#[derive(Debug)]
pub(super) enum AppendError {
    /// The disk is full: nothing has changed, and the next append may succeed.
    Full(io::Error),
    /// What is on disk isn't known any more. A later sync that succeeds proves nothing about earlier pages.
    Unknown(io::Error),
}

/// The tokens' file.
pub(super) struct Log {
    medium: Box<dyn Medium>,
    /// `None` only in tests, which bring a medium of their own.
    folder: Option<Folder>,
    /// Everything before this offset is synced and whole.
    end: u64,
    base_bytes: u64,
    /// Written anew when `end` gets here.
    anew_at: u64,
}

impl Log {
    /// Reads what the folder holds into `kept`, and gets ready to append.
    pub(super) fn open(folder: Folder, kept: &mut Kept) -> Result<Self, OpenError> {
        let bytes = folder.read()?;
        let path = folder.tokens();
        let found = match bytes.as_deref().map(|bytes| frame::read(bytes, kept)) {
            None => None,
            Some(Ok(contents)) => Some(contents),
            Some(Err(Fault::Version(found))) => return Err(OpenError::Later { path, found }),
            Some(Err(Fault::Damage { at, what })) => return Err(OpenError::Damaged { path, at, what }),
        };
        let length = bytes.as_ref().map_or(0, Vec::len) as u64;
        let is_only_a_base =
            found.is_some_and(|contents| contents.base_end == contents.end && contents.end == length);
        if is_only_a_base {
            return Ok(Self::at(Box::new(folder.open()?), Some(folder), length));
        }
        // Written anew, not synced in place: after a sync that failed, the system may show bytes that the disk never got.
        let bytes = frame::file_of(kept);
        let prepared = folder.prepare(&bytes).map_err(doing("write anew", &path))?;
        let file = folder.put_in_place(prepared).map_err(doing("put in place", &path))?;
        Ok(Self::at(Box::new(file), Some(folder), bytes.len() as u64))
    }

    pub(super) fn at(medium: Box<dyn Medium>, folder: Option<Folder>, end: u64) -> Self {
        let base_bytes = end.saturating_sub(HEADER_BYTES as u64);
        let mut log = Self { medium, folder, end, base_bytes, anew_at: 0 };
        log.anew_at = log.end + log.base_bytes.max(APPENDED_BYTES_MIN);
        log
    }

    /// Puts the records on disk.
    pub(super) fn append(&mut self, body: &Body) -> Result<(), AppendError> {
        let frame = body.frame(self.end);
        if let Err(error) = self.medium.write_at(&frame, self.end) {
            let is_full = matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
            );
            // What was written of it must not be taken for a record one day.
            return match self.medium.cut(self.end) {
                Ok(()) if is_full => Err(AppendError::Full(error)),
                _ => Err(AppendError::Unknown(error)),
            };
        }
        self.medium.sync().map_err(AppendError::Unknown)?;
        self.end += frame.len() as u64;
        Ok(())
    }

    /// Notes behind the last frame that it was synced, so that damage to it can't pass for an unfinished end. The next
    /// frame takes this place. Not synced and no loss if it fails: it only helps to tell.
    pub(super) fn mark(&mut self) {
        let mark = Body::default().frame(self.end);
        if self.medium.write_at(&mark, self.end).is_err() {
            let _ = self.medium.cut(self.end);
        }
    }

    /// Whether most of the file is outdated.
    pub(super) fn is_long(&self) -> bool {
        self.folder.is_some() && self.end >= self.anew_at
    }

    /// Goes on in a new file with these bytes.
    pub(super) fn begin_anew(&mut self, bytes: &[u8]) -> Result<(), AppendError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let prepared = match folder.prepare(bytes) {
            Ok(prepared) => prepared,
            Err(_) => {
                // The old file is as good as before; when it has grown as much again there may be space.
                self.anew_at = self.end + self.base_bytes.max(APPENDED_BYTES_MIN);
                return Ok(());
            }
        };
        let file = folder.put_in_place(prepared).map_err(AppendError::Unknown)?;
        *self = Self::at(Box::new(file), self.folder.take(), bytes.len() as u64);
        Ok(())
    }
}
