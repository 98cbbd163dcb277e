//! One process per data folder.
//!
//! Owns: the lock file. The system drops the lock when the process ends, however it ends, so a lock file that
//! a killed process left behind stops nobody.

use super::error::{FolderError, doing};
use crate::storage::{Files, Hold, Lock};
use std::path::Path;

/// The lock on a data folder, held as long as this lives.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _hold: Hold,
}

impl FolderLock {
    /// Takes the lock, or says which process has it.
    pub(crate) fn take(files: &dyn Files, folder: &Path) -> Result<Self, FolderError> {
        let path = folder.join("lock");
        match files.lock(&path).map_err(doing("lock", &path))? {
            Lock::Held(hold) => Ok(Self { _hold: hold }),
            Lock::Taken(process) => Err(FolderError::InUse { folder: folder.to_owned(), process }),
        }
    }
}
