//! Lines of an audit log, forwards and backwards.
//!
//! Owns: that a line is bounded, and that files which are put aside meanwhile are read all the same. Never: what a line
//! means.

use super::files::Place;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;

/// How much is read at a time.
const BLOCK_BYTES: usize = 64 << 10;
/// A line has at most 256 bytes of name, 128 of owner, each six times as long at worst, a policy, and so on.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Reads files from the first line to the last.
pub struct Forward {
    files: Vec<BufReader<File>>,
}

impl Forward {
    /// Opens files, oldest first. One that is gone by now is left out.
    pub fn open(places: &[Place]) -> Self {
        // Opened from the newest on: one that is put aside meanwhile is found under its old name or its new one.
        let files = places.iter().rev().filter_map(|place| File::open(&place.path).ok());
        Self { files: files.map(|file| BufReader::with_capacity(BLOCK_BYTES, file)).collect() }
    }
}

impl Iterator for Forward {
    type Item = io::Result<Vec<u8>>;

    /// The next line, without its end. What is no whole line yet is left out.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let file = self.files.last_mut()?;
            let mut line = Vec::new();
            match file.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line) {
                Err(error) => return Some(Err(error)),
                Ok(0) => {
                    self.files.pop();
                }
                Ok(_) if line.last() == Some(&b'\n') => {
                    line.pop();
                    return Some(Ok(line));
                }
                Ok(_) => {}
            }
        }
    }
}

/// Reads files from the last line to the first.
pub struct Backward {
    /// The files that are still to be read, the newest last, and how much of each.
    files: Vec<(File, u64)>,
    /// What has been read and not given yet: the end of it is next.
    block: Vec<u8>,
    /// The line that was given.
    line: Vec<u8>,
    scanned: u64,
}

/// One line and where it stands.
pub(super) struct Placed<'a> {
    pub(super) line: &'a [u8],
    /// Where it begins in its file.
    pub(super) begins: u64,
    /// Whether its end is there too.
    pub(super) ended: bool,
}

impl Backward {
    /// Opens files, oldest first. One that is gone by now is left out.
    ///
    /// # Errors
    /// When the size of one can't be seen.
    pub fn open(places: &[Place]) -> io::Result<Self> {
        let mut files = Vec::new();
        for place in places.iter().rev() {
            let Ok(file) = File::open(&place.path) else { continue };
            let bytes = file.metadata()?.len();
            files.push((file, bytes));
        }
        files.reverse();
        Ok(Self { files, block: Vec::new(), line: Vec::new(), scanned: 0 })
    }

    pub(super) fn open_file(file: File, bytes: u64) -> Self {
        Self { files: vec![(file, bytes)], block: Vec::new(), line: Vec::new(), scanned: 0 }
    }

    /// How many bytes were read so far.
    pub fn scanned(&self) -> u64 {
        self.scanned
    }

    /// The next line towards the beginning, without its end.
    ///
    /// # Errors
    /// As the system's.
    #[expect(clippy::should_implement_trait, reason = "an iterator can't lend its lines")]
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        Ok(self.next_with_begin()?.map(|placed| placed.line))
    }

    /// The same, with where the line begins in its file.
    pub(super) fn next_with_begin(&mut self) -> io::Result<Option<Placed<'_>>> {
        loop {
            let Some((file, left)) = self.files.last_mut() else { return Ok(None) };
            let ended = self.block.last() == Some(&b'\n');
            let body = self.block.len() - usize::from(ended);
            let begins = self.block.get(..body).and_then(|body| body.iter().rposition(|byte| *byte == b'\n'));
            let begins = match begins {
                Some(before) => before + 1,
                // The beginning of the file begins a line; so does where one is longer than any.
                None if !self.block.is_empty() && (*left == 0 || body > LINE_BYTES_MAX) => 0,
                None if *left == 0 => {
                    self.files.pop();
                    continue;
                }
                None => {
                    let bytes = (BLOCK_BYTES as u64).min(*left);
                    let mut block = vec![0; usize::try_from(bytes).unwrap_or(BLOCK_BYTES)];
                    file.read_exact_at(&mut block, *left - bytes)?;
                    *left -= bytes;
                    self.scanned += bytes;
                    block.append(&mut self.block);
                    self.block = block;
                    continue;
                }
            };
            self.line = self.block.split_off(begins);
            if ended {
                self.line.pop();
            }
            let begins = *left + begins as u64;
            return Ok(Some(Placed { line: &self.line, begins, ended }));
        }
    }
}
