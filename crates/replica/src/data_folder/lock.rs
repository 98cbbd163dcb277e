//! One process per data folder.
//!
//! Owns: the lock file. The system drops the lock when the process ends, however it ends, so a lock file that
//! a killed process left behind stops nobody.

use super::error::{FolderError, doing};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

/// The lock on a data folder, held as long as this lives.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the lock, or says which process has it.
    pub(crate) fn take(folder: &Path) -> Result<Self, FolderError> {
        let path = folder.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(doing("open lock file", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = file.read_to_string(&mut text);
                let process = text.trim().to_owned();
                let process = (read.is_ok() && !process.is_empty()).then_some(process);
                return Err(FolderError::InUse { folder: folder.to_owned(), process });
            }
            Err(TryLockError::Error(source)) => return Err(doing("lock", &path)(source)),
        }
        // The id only helps the person who meets the lock; a full disk must not stop the node for it.
        let note = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        if let Err(error) = note {
            tracing::warn!(file = %path.display(), %error, "could not note the process id in the lock file");
        }
        Ok(Self { _file: file })
    }
}
