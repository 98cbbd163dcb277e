//! Whether the proxy before this one left requests on the way.
//!
//! Owns: the file `running` in the gate's folder: there while a proxy runs, and after one that didn't end cleanly. Never:
//! what follows from it.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The file, for as long as this proxy runs.
#[derive(Debug)]
pub(super) struct Doubt {
    path: PathBuf,
    was_there: bool,
}

impl Doubt {
    /// Looks whether it is there, and makes it; returns once it is on disk.
    pub(super) fn begin(folder: &Path) -> io::Result<Self> {
        let path = folder.join("running");
        let was_there = match File::create_new(&path) {
            Ok(_) => false,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => true,
            Err(error) => return Err(error),
        };
        File::open(folder)?.sync_all()?;
        Ok(Self { path, was_there })
    }

    pub(super) fn is_there(&self) -> bool {
        self.was_there
    }

    /// Nothing is on the way any more. Not synced: should the file come back, there is a wait and no harm.
    pub(super) fn end(self) -> io::Result<()> {
        fs::remove_file(self.path)
    }
}
