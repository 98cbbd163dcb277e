//! The folders of a disk: which name is which file.
//!
//! Owns: the names as every process sees them, those on the disk, and the changes on their way there. Never: the bytes of
//! a file.

use super::Loss;
use super::content::{self, Content};
use crate::randomness::Seeded;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What a name stands for.
#[derive(Clone)]
enum Named {
    Folder,
    File(Arc<Mutex<Content>>),
}

/// One change of a folder.
enum Change {
    Set(PathBuf, Named),
    Moved { from: PathBuf, to: PathBuf },
    Gone(PathBuf),
}

/// The names of a disk. The root, and the folder above a data folder, are always there.
#[derive(Default)]
pub(super) struct Names {
    seen: BTreeMap<PathBuf, Named>,
    on_disk: BTreeMap<PathBuf, Named>,
    /// By folder, oldest first: what isn't on the disk yet.
    changes: BTreeMap<PathBuf, Vec<Change>>,
}

impl Names {
    pub(super) fn exists(&self, path: &Path) -> bool {
        self.seen.contains_key(path)
    }

    pub(super) fn is_folder(&self, path: &Path) -> bool {
        path.parent().is_none_or(|above| above.as_os_str().is_empty())
            || matches!(self.seen.get(path), Some(Named::Folder))
    }

    pub(super) fn file(&self, path: &Path) -> io::Result<Arc<Mutex<Content>>> {
        match self.seen.get(path) {
            Some(Named::File(file)) => Ok(Arc::clone(file)),
            Some(Named::Folder) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn make_file(&mut self, path: &Path) -> io::Result<Arc<Mutex<Content>>> {
        let file = Arc::default();
        self.make(path, Named::File(Arc::clone(&file)))?;
        Ok(file)
    }

    pub(super) fn make_folder(&mut self, path: &Path) -> io::Result<()> {
        self.make(path, Named::Folder)
    }

    fn make(&mut self, path: &Path, named: Named) -> io::Result<()> {
        if self.exists(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        if !self.is_folder(folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.seen.insert(path.to_owned(), named.clone());
        self.change(folder, Change::Set(path.to_owned(), named));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (Some(folder), true) = (from.parent(), from.parent() == to.parent()) else {
            // The product never moves a file to another folder, and what a crash makes of that isn't here.
            return Err(io::ErrorKind::CrossesDevices.into());
        };
        let named = self.seen.remove(from).ok_or(io::ErrorKind::NotFound)?;
        self.seen.insert(to.to_owned(), named);
        self.change(folder, Change::Moved { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.file(path)?;
        self.seen.remove(path);
        self.change(path.parent().unwrap_or(Path::new("")), Change::Gone(path.to_owned()));
        Ok(())
    }

    pub(super) fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        if !self.is_folder(folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(self.seen.keys().filter(|path| path.parent() == Some(folder)).cloned().collect())
    }

    /// The files with their names, by name.
    pub(super) fn files(&self) -> impl Iterator<Item = (&PathBuf, &Arc<Mutex<Content>>)> {
        self.seen.iter().filter_map(|(path, named)| match named {
            Named::File(file) => Some((path, file)),
            Named::Folder => None,
        })
    }

    /// Whether a crash leaves this file its name.
    #[cfg(kunci_plants)]
    pub(super) fn is_on_disk(&self, path: &Path, file: &Arc<Mutex<Content>>) -> bool {
        matches!(self.on_disk.get(path), Some(Named::File(named)) if Arc::ptr_eq(named, file))
    }

    /// All files that a crash could leave, each once, also those that have no name any more.
    pub(super) fn all_files(&self) -> Vec<(PathBuf, Arc<Mutex<Content>>)> {
        let mut all: Vec<(PathBuf, Arc<Mutex<Content>>)> = Vec::new();
        for (path, named) in self.seen.iter().chain(&self.on_disk) {
            if let Named::File(file) = named
                && !all.iter().any(|(_, known)| Arc::ptr_eq(known, file))
            {
                all.push((path.clone(), Arc::clone(file)));
            }
        }
        all
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.files().map(|(_, file)| content::lock(file).bytes().len() as u64).sum()
    }

    /// How many changes of a folder aren't on the disk.
    pub(super) fn changes_of(&self, folder: &Path) -> usize {
        self.changes.get(folder).map_or(0, Vec::len)
    }

    /// The oldest so many changes of a folder have reached the disk.
    pub(super) fn sync(&mut self, folder: &Path, count: usize) {
        let Some(changes) = self.changes.get_mut(folder) else { return };
        for change in changes.drain(..count.min(changes.len())) {
            match change {
                Change::Set(path, named) => drop(self.on_disk.insert(path, named)),
                Change::Moved { from, to } => {
                    if let Some(named) = self.on_disk.remove(&from) {
                        self.on_disk.insert(to, named);
                    }
                }
                Change::Gone(path) => drop(self.on_disk.remove(&path)),
            }
        }
    }

    /// The machine crashes. Says in words which changes are lost.
    pub(super) fn crash(&mut self, loss: Loss, random: &mut Seeded) -> Vec<String> {
        let folders: Vec<PathBuf> = self.changes.keys().cloned().collect();
        let mut lost = Vec::new();
        for folder in folders {
            let count = self.changes_of(&folder);
            let kept = match loss {
                Loss::All => 0,
                Loss::Nothing => count,
                Loss::Some | Loss::Torn => random.index(count + 1),
            };
            self.sync(&folder, kept);
            if kept < count {
                lost.push(format!("{}: {} of {count} changes of names lost", folder.display(), count - kept));
            }
        }
        self.changes.clear();
        self.seen = std::mem::take(&mut self.on_disk);
        // What is in a folder that isn't there can't be reached.
        let reachable = |names: &Self, path: &Path| path.parent().is_none_or(|above| names.is_folder(above));
        while let Some(lost) = self.seen.keys().find(|path| !reachable(self, path)).cloned() {
            self.seen.remove(&lost);
        }
        self.on_disk = self.seen.clone();
        lost
    }

    fn change(&mut self, folder: &Path, change: Change) {
        self.changes.entry(folder.to_owned()).or_default().push(change);
    }
}
