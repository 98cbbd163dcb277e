//! The files of the system.
//!
//! Owns: which system call each operation is. Never: waits: a sync blocks its thread, and is over when it returns.

use super::{Access, Files, Hold, Lock, OpenFile, Synced};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::future::ready;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of the system.
#[derive(Debug)]
pub(crate) struct SystemFiles;

#[derive(Debug)]
struct SystemFile(File);

/// A file that this process has for itself until this is dropped.
#[derive(Debug)]
struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing isn't enough: a child that another thread just started shares the open file until it runs its program.
        // Should it fail, closing does what is left to do.
        let _ = self.0.unlock();
    }
}

impl Files for SystemFiles {
    fn blocks(&self) -> bool {
        true
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|item| item.map(|item| item.path())).collect()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn OpenFile>> {
        let mut options = OpenOptions::new();
        let options = match access {
            Access::Read => options.read(true),
            Access::Append => options.append(true),
            Access::New => options.write(true).create_new(true),
            Access::Replace => options.write(true).create(true).truncate(true),
        };
        Ok(Arc::new(SystemFile(options.open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> Synced {
        Box::pin(ready(File::open(folder).and_then(|opened| opened.sync_all())))
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = file.read_to_string(&mut text);
                let process = text.trim().to_owned();
                return Ok(Lock::Taken((read.is_ok() && !process.is_empty()).then_some(process)));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The id only helps the person who meets the lock; a full disk must not stop the node for it.
        let note = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        if let Err(error) = note {
            tracing::warn!(file = %path.display(), %error, "could not note the process id in the lock file");
        }
        // The system drops the lock when the process ends, however it ends.
        Ok(Lock::Held(Hold::new(LockedFile(file))))
    }

    fn free_bytes(&self, folder: &Path) -> io::Result<u64> {
        let found = rustix::fs::statvfs(folder)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

impl OpenFile for SystemFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(into, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.0).write_all(bytes)
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn sync_data(&self) -> Synced {
        Box::pin(ready(self.0.sync_data()))
    }

    fn sync_all(&self) -> Synced {
        Box::pin(ready(self.0.sync_all()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_file_is_free_once_dropped_whoever_still_shares_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let Ok(Lock::Held(hold)) = SystemFiles.lock(&path) else { panic!("it is free") };
        // What a fork makes of it.
        let _of_a_child = hold._held.downcast_ref::<LockedFile>().unwrap().0.try_clone().unwrap();
        assert!(matches!(SystemFiles.lock(&path), Ok(Lock::Taken(Some(_)))));
        drop(hold);
        assert!(matches!(SystemFiles.lock(&path), Ok(Lock::Held(_))));
    }
}
