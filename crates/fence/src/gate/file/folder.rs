//! The folder of a durable gate.
//!
//! Owns: its layout (`FOLDER/tokens`, `FOLDER/lock`), one process per folder, and putting a whole file in place. Never:
//! what the bytes mean, or a repair of what is damaged.

use super::OpenError;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// A folder that this process has for itself until this is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    lock: File,
}

impl Folder {
    /// Takes the folder at `path`; makes it when it isn't there.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        make(path)?;
        let lock_path = path.join("lock");
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(doing("open lock file", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut process = String::new();
                // Who it is only helps the person.
                let _ = lock.read_to_string(&mut process);
                let process = process.trim().to_owned();
                return Err(OpenError::InUse { folder: path.to_owned(), process });
            }
            Err(TryLockError::Error(source)) => return Err(doing("lock", &lock_path)(source)),
        }
        // As above: a full disk doesn't stop a gate for it.
        let _ = lock.set_len(0).and_then(|()| write!(lock, "{}", std::process::id()));
        Ok(Self { path: path.to_owned(), lock })
    }

    /// Where the tokens are.
    pub(super) fn tokens(&self) -> PathBuf {
        self.path.join("tokens")
    }

    /// The bytes of the tokens' file; `None` when there is none.
    pub(super) fn read(&self) -> Result<Option<Vec<u8>>, OpenError> {
        match fs::read(self.tokens()) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(doing("read", &self.tokens())(source)),
        }
    }

    /// The file in its place, to append to.
    pub(super) fn open(&self) -> Result<File, OpenError> {
        let path = self.tokens();
        OpenOptions::new().read(true).write(true).open(&path).map_err(doing("open", &path))
    }

    /// Writes a file beside the one in place, whole and synced.
    pub(super) fn prepare(&self, bytes: &[u8]) -> io::Result<Prepared> {
        let path = self.path.join("tokens.new");
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()?;
            Ok(file)
        });
        match written {
            Ok(file) => Ok(Prepared { file, path }),
            Err(error) => {
                // It takes space that may be what is missing.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Puts a prepared file in the place of the one before: after a crash there is either.
    pub(super) fn put_in_place(&self, prepared: Prepared) -> io::Result<File> {
        fs::rename(&prepared.path, self.tokens())?;
        sync(&self.path)?;
        Ok(prepared.file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing isn't enough: a child that another thread just started shares the open file until it runs its program.
        // Should it fail, closing does what is left to do.
        let _ = self.lock.unlock();
    }
}

/// A whole and synced file that hasn't got its name yet.
#[derive(Debug)]
pub(super) struct Prepared {
    file: File,
    path: PathBuf,
}

/// Makes `folder` and everything above it that is missing, durably.
fn make(folder: &Path) -> Result<(), OpenError> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make(parent)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(doing("make folder", folder)(error));
        }
        _ => {}
    }
    sync(parent).map_err(doing("sync folder", parent))
}

/// Makes new and renamed names in `folder` durable.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

pub(super) fn doing(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::Io { doing: what, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_free_once_dropped_whoever_still_shares_its_open_file() {
        let path = tempfile::tempdir().unwrap();
        let folder = Folder::take(path.path()).unwrap();
        // What a fork makes of it.
        let _of_a_child = folder.lock.try_clone().unwrap();
        assert!(matches!(Folder::take(path.path()), Err(OpenError::InUse { .. })));
        drop(folder);
        Folder::take(path.path()).unwrap();
    }
}
