//! Following an audit log as it is written.
//!
//! Owns: going on in the next file when one is put aside. Never: stops by itself.

use crate::exit::{Exit, Failure};
use kunci_server::audit::{CURRENT, Place, files_of};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// From one look to the next.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The file that is written, from its beginning on.
pub(super) struct Following {
    folder: PathBuf,
    file: BufReader<File>,
    inode: u64,
    /// A line whose end hasn't come.
    line: Vec<u8>,
}

impl Following {
    /// Opens the file that is written.
    pub(super) fn begin(folder: &Path) -> io::Result<Self> {
        let file = File::open(folder.join(CURRENT))?;
        let inode = file.metadata()?.ino();
        Ok(Self { folder: folder.to_owned(), file: BufReader::new(file), inode, line: Vec::new() })
    }

    /// The files before the one that is followed.
    pub(super) fn before(&self, places: &[Place]) -> Vec<Place> {
        let is_other =
            |place: &&Place| std::fs::metadata(&place.path).is_ok_and(|data| data.ino() != self.inode);
        places.iter().filter(is_other).cloned().collect()
    }

    /// Shows each line, and waits for more.
    pub(super) fn run(&mut self, mut show: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
        loop {
            self.read(&mut show)?;
            let now = std::fs::metadata(self.folder.join(CURRENT));
            if now.is_ok_and(|data| data.ino() != self.inode) {
                // What was written before it was put aside comes first.
                self.read(&mut show)?;
                for file in self.next_files().map_err(|error| failed(&error))? {
                    self.inode = file.metadata().map_err(|error| failed(&error))?.ino();
                    self.file = BufReader::new(file);
                    self.line.clear();
                    self.read(&mut show)?;
                }
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn read(&mut self, show: &mut impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
        loop {
            let read = self.file.read_until(b'\n', &mut self.line).map_err(|error| failed(&error))?;
            if read == 0 {
                return Ok(());
            }
            if self.line.pop_if(|last| *last == b'\n').is_some() {
                show(&self.line)?;
                self.line.clear();
            }
        }
    }

    /// The files behind the one that was followed, oldest first.
    fn next_files(&self) -> io::Result<Vec<File>> {
        let mut next = Vec::new();
        for place in files_of(&self.folder)?.iter().rev() {
            let Ok(file) = File::open(&place.path) else { continue };
            if file.metadata()?.ino() == self.inode {
                break;
            }
            next.push(file);
        }
        next.reverse();
        Ok(next)
    }
}

fn failed(error: &io::Error) -> Failure {
    Failure::new(Exit::Refused, format!("follow the audit log: {error}"))
}
