//! What one process of a node sees of its disk.
//!
//! Owns: the product's file operations on a simulated disk. Never: works for a process that lost the disk: it died, and
//! what its destructors still do reaches nobody.

use super::content::{self, Content};
use super::{Disk, Part, State};
use kunci_replica::storage::{Access, Files, Hold, Lock, OpenFile, Synced};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::sleep;

/// A mount of a disk. A clone is another handle to the same.
#[derive(Clone)]
pub(super) struct Mount {
    disk: Disk,
    number: u64,
}

/// An open file of a mount.
struct MountedFile {
    mount: Mount,
    part: Part,
    content: Arc<Mutex<Content>>,
}

/// What a sync has to bring to the disk: what was there when it was asked for.
enum Wanted {
    Content(Arc<Mutex<Content>>, usize),
    Names(PathBuf, usize),
}

impl Mount {
    pub(super) fn new(disk: Disk, number: u64) -> Self {
        Self { disk, number }
    }

    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        if state.mount == self.number {
            return Ok(state);
        }
        Err(io::Error::other("this process has lost its disk"))
    }

    fn sync(&self, wanted: impl FnOnce(&State) -> Wanted) -> Synced {
        let begun = self.state().map(|mut state| {
            let (least, most) = state.sync_us;
            (wanted(&state), Duration::from_micros(state.random.between(least, most)))
        });
        let mount = self.clone();
        Box::pin(async move {
            let (wanted, takes) = begun?;
            let takes = (takes.as_micros() + 500) / 1_000;
            if takes > 0 {
                sleep(Duration::from_millis(u64::try_from(takes).unwrap_or(u64::MAX))).await;
            }
            // The sender lives as long as the disk.
            drop(mount.disk.shared.hangs.subscribe().wait_for(|hangs| !hangs).await);
            mount.end_sync(wanted)
        })
    }

    fn end_sync(&self, wanted: Wanted) -> io::Result<()> {
        let mut state = self.state()?;
        state.counts.syncs += 1;
        if state.fails {
            state.counts.failed_syncs += 1;
            // Some file systems keep what they couldn't write in memory, others throw it away.
            if let Wanted::Content(content, _) = wanted
                && state.random.hits_ppm(500_000)
            {
                content::lock(&content).forget_unsynced();
            }
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        match wanted {
            Wanted::Content(content, length) => content::lock(&content).sync(length),
            Wanted::Names(folder, count) => state.names.sync(&folder, count),
        }
        #[cfg(kunci_plants)]
        state.note_log();
        Ok(())
    }

    fn opened(&self, path: &Path, content: Arc<Mutex<Content>>) -> Arc<dyn OpenFile> {
        Arc::new(MountedFile { mount: self.clone(), part: Part::of(path), content })
    }

    fn unlock(&self) {
        if let Ok(mut state) = self.state() {
            state.locked = None;
        }
    }
}

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mount {} of a simulated disk", self.number)
    }
}

impl Files for Mount {
    fn blocks(&self) -> bool {
        false
    }

    fn exists(&self, path: &Path) -> bool {
        self.state().is_ok_and(|state| state.names.exists(path))
    }

    fn is_folder(&self, path: &Path) -> bool {
        self.state().is_ok_and(|state| state.names.is_folder(path))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.state()?.names.make_folder(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.state()?.names.list(folder)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.state()?.names.file(path)?;
        Ok(content::lock(&file).bytes().to_vec())
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn OpenFile>> {
        let mut state = self.state()?;
        let content = match access {
            Access::Read | Access::Append => state.names.file(path)?,
            Access::New => state.names.make_file(path)?,
            Access::Replace if state.names.exists(path) => {
                let file = state.names.file(path)?;
                content::lock(&file).cut(0);
                file
            }
            Access::Replace => state.names.make_file(path)?,
        };
        drop(state);
        Ok(self.opened(path, content))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.state()?.names.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.state()?.names.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> Synced {
        self.sync(|state| Wanted::Names(folder.to_owned(), state.names.changes_of(folder)))
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        let mut state = self.state()?;
        if state.locked.is_some() {
            return Ok(Lock::Taken(None));
        }
        if !state.names.exists(path) {
            state.names.make_file(path)?;
        }
        state.locked = Some((path.to_owned(), self.number));
        drop(state);
        Ok(Lock::Held(Hold::new(Unlock(self.clone()))))
    }

    fn free_bytes(&self, _folder: &Path) -> io::Result<u64> {
        let state = self.state()?;
        Ok(state.room.map_or(u64::MAX, |room| room.saturating_sub(state.names.bytes())))
    }
}

/// Gives the lock back when it is dropped.
struct Unlock(Mount);

impl Drop for Unlock {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl fmt::Debug for MountedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a file of {:?}", self.mount)
    }
}

impl OpenFile for MountedFile {
    fn bytes(&self) -> io::Result<u64> {
        drop(self.mount.state()?);
        Ok(content::lock(&self.content).bytes().len() as u64)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        drop(self.mount.state()?);
        let content = content::lock(&self.content);
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.bytes().len());
        let rest = &content.bytes()[from..];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.mount.state()?;
        let free = state.room.map_or(u64::MAX, |room| room.saturating_sub(state.names.bytes()));
        let fits = usize::try_from(free).unwrap_or(usize::MAX).min(bytes.len());
        content::lock(&self.content).append(&bytes[..fits]);
        let is_full = fits < bytes.len();
        state.counts.full_writes += u64::from(is_full);
        drop(state);
        self.mount.disk.note_write(self.part);
        if is_full { Err(io::Error::from_raw_os_error(libc::ENOSPC)) } else { Ok(()) }
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        drop(self.mount.state()?);
        content::lock(&self.content).cut(usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(())
    }

    fn sync_data(&self) -> Synced {
        let content = Arc::clone(&self.content);
        let part = self.part;
        self.mount.sync(move |state| {
            let content_now = content::lock(&content);
            let is_skipped = part == Part::Log && crate::plants::skips_sync(state.counts.syncs);
            let length = if is_skipped { content_now.synced() } else { content_now.bytes().len() };
            drop(content_now);
            Wanted::Content(content, length)
        })
    }

    fn sync_all(&self) -> Synced {
        self.sync_data()
    }
}
