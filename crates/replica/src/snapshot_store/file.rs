//! One snapshot file that was found whole.
//!
//! Owns: the handle that goes through the consensus library instead of the state itself, reading it back, and
//! taking one in from another member. Never: more than one chunk in memory.

use super::SnapshotStore;
use super::format::Reader;
use crate::raft_types::SnapshotMeta;
use crate::storage::{Files, OpenFile};
use bytes::Bytes;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A handle to a whole, checked snapshot file. It stays readable while it is held, also after the store
/// removed the file for a newer one.
#[derive(Clone, Debug)]
pub struct SnapshotFile {
    pub(super) files: Arc<dyn Files>,
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn OpenFile>,
    pub(super) meta: SnapshotMeta,
    pub(super) ids_used: u64,
    pub(super) bytes: u64,
}

impl SnapshotFile {
    /// What the snapshot covers.
    pub fn meta(&self) -> &SnapshotMeta {
        &self.meta
    }

    /// The largest node id that had been given out by then.
    pub fn ids_used(&self) -> u64 {
        self.ids_used
    }

    /// Where the file is, or was.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file is among.
    pub(crate) fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Up to `bytes_max` bytes of the file from `offset`, to send it to another member. Empty at the end.
    pub fn read_at(&self, offset: u64, bytes_max: usize) -> io::Result<Bytes> {
        let bytes = self.bytes.saturating_sub(offset).min(bytes_max as u64) as usize;
        let mut piece = vec![0; bytes];
        let read = FileFrom { file: Arc::clone(&self.file), at: offset }.read_exact(&mut piece);
        read.map_err(|error| in_file("read", &self.path, &error))?;
        Ok(Bytes::from(piece))
    }

    /// The body, in the chunks in which it was written, each one checked. A failure ends it.
    pub fn chunks(&self) -> io::Result<SnapshotChunks> {
        let from = BufReader::new(FileFrom { file: Arc::clone(&self.file), at: 0 });
        let reader = Reader::begin(from).map_err(|error| in_file("read", &self.path, &error))?;
        Ok(SnapshotChunks { reader: Some(reader), path: self.path.clone() })
    }
}

/// The body of a snapshot, chunk by chunk.
pub struct SnapshotChunks {
    reader: Option<Reader<BufReader<FileFrom>>>,
    path: PathBuf,
}

impl Iterator for SnapshotChunks {
    type Item = io::Result<Bytes>;

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        match self.reader.as_mut()?.next_chunk() {
            Ok(Some(chunk)) => Some(Ok(chunk)),
            Ok(None) => {
                self.reader = None;
                None
            }
            Err(error) => {
                self.reader = None;
                Some(Err(in_file("read", &self.path, &error)))
            }
        }
    }
}

/// A snapshot on its way in from another member. Dropped before `finish`, it leaves nothing behind.
#[derive(Debug)]
pub struct SnapshotReceiver {
    pub(super) store: SnapshotStore,
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn OpenFile>,
    pub(super) received: u64,
    pub(super) is_finished: bool,
}

impl SnapshotReceiver {
    /// Bytes received so far: the offset that the next piece must have.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Takes the piece that stands at `offset` of the file.
    pub fn take(&mut self, offset: u64, piece: &[u8]) -> io::Result<()> {
        if offset != self.received {
            let text =
                format!("take a piece of a snapshot: it is at offset {offset}, expected {}", self.received);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        self.file.append(piece).map_err(|error| in_file("write", &self.path, &error))?;
        self.received += piece.len() as u64;
        Ok(())
    }

    /// Checks the whole file, and gives a handle to it. It becomes the node's snapshot by
    /// [`SnapshotStore::keep`].
    pub async fn finish(mut self) -> io::Result<SnapshotFile> {
        self.file.sync_data().await.map_err(|error| in_file("sync", &self.path, &error))?;
        let snapshot = self.store.check(&self.path)?;
        self.is_finished = true;
        Ok(snapshot)
    }
}

impl Drop for SnapshotReceiver {
    fn drop(&mut self) {
        if !self.is_finished
            && let Err(error) = self.store.files().remove(&self.path)
        {
            tracing::warn!(file = %self.path.display(), %error, "could not remove a half received snapshot");
        }
    }
}

/// Reads a shared file from its start, without moving anybody else's place in it.
pub(super) struct FileFrom {
    pub(super) file: Arc<dyn OpenFile>,
    pub(super) at: u64,
}

impl Read for FileFrom {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Writes behind what is in a file.
pub(super) struct FileTo(pub(super) Arc<dyn OpenFile>);

impl io::Write for FileTo {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn in_file(verb: &str, path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{verb} snapshot file {}: {error}", path.display()))
}
