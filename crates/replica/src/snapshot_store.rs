//! The snapshots of a node, on disk.
//!
//! Owns: which snapshot file counts, writing a new one so that a crash leaves the old or the new, and removing
//! what is not needed any more. Never: the state in a snapshot, which comes and goes in chunks. Next:
//! `snapshot_store/format.rs` has the bytes, `snapshot_store/file.rs` the handle.

mod file;
pub(crate) mod format;

use crate::data_folder::{ClusterId, FolderError, doing, put_in_place, sync_folder};
use crate::raft_types::SnapshotMeta;
use crate::storage::{Access, Files, OpenFile, Storage, at_once};
use file::{FileFrom, FileTo, in_file};
pub use file::{SnapshotChunks, SnapshotFile, SnapshotReceiver};
pub use format::CHUNK_BYTES_MAX;
use format::{Header, Reader, Writer};
use std::ffi::OsStr;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Snapshots that are kept: the one that counts, and the one before it in case that one goes bad.
const SNAPSHOTS_KEPT: usize = 2;
/// So much is written before it is synced. Tens of megabytes at once would keep the log, on the same disk, from syncing.
const UNSYNCED_BYTES_MAX: usize = 1 << 20;
const PREFIX: &str = "snapshot-";
const SUFFIX: &str = ".kunci";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// The snapshots in one folder. A clone is another handle to the same.
#[derive(Clone, Debug)]
pub struct SnapshotStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    files: Arc<dyn Files>,
    folder: PathBuf,
    cluster_id: ClusterId,
    newest: Mutex<Option<SnapshotFile>>,
    temporaries: AtomicU64,
}

/// The snapshot files of a folder, newest first.
struct Found {
    whole: Vec<SnapshotFile>,
    /// With what is wrong.
    damaged: Vec<(PathBuf, String)>,
}

impl SnapshotStore {
    /// Opens the snapshots in `folder`: removes what a crash left half written, reads the newest ones
    /// completely, and chooses the newest whole one that, with the log behind index `purged`, leaves no gap.
    ///
    /// A damaged file is set aside as `….damaged` when the log still covers it, and else refused.
    pub fn open(folder: &Path, cluster_id: ClusterId, purged: Option<u64>) -> Result<Self, FolderError> {
        at_once(Self::open_on(&Storage::system(), folder, cluster_id, purged))
    }

    /// As [`SnapshotStore::open`], on any storage.
    pub async fn open_on(
        storage: &Storage,
        folder: &Path,
        cluster_id: ClusterId,
        purged: Option<u64>,
    ) -> Result<Self, FolderError> {
        let files = Arc::clone(storage.files());
        remove_temporaries(&*files, folder)?;
        let inner = Inner {
            files,
            folder: folder.to_owned(),
            cluster_id,
            newest: Mutex::new(None),
            temporaries: AtomicU64::new(0),
        };
        let store = Self { inner: Arc::new(inner) };
        let Found { whole, damaged } = store.look_at_files()?;
        let newest = whole.first().cloned();
        let covers = newest.as_ref().and_then(|newest| newest.meta.last_log_id).map(|last| last.index);
        if purged > covers {
            let found = match (damaged.first(), covers) {
                (Some((path, what)), _) => format!("the snapshot {} is damaged ({what})", path.display()),
                (None, Some(covers)) => format!("the newest snapshot covers only index {covers}"),
                (None, None) => "there is no snapshot".to_owned(),
            };
            let purged = purged.unwrap_or_default();
            return Err(FolderError::SnapshotMissing { folder: folder.to_owned(), purged, found });
        }
        for (path, what) in &damaged {
            tracing::warn!(file = %path.display(), what, "set a damaged snapshot aside; the log still covers it");
            let renamed = store.files().rename(path, &aside(path));
            renamed.map_err(doing("set aside damaged snapshot", path))?;
        }
        sync_folder(&**store.files(), folder).await?;
        *store.newest_slot() = newest;
        store.remove_old().map_err(doing("remove old snapshots in", folder))?;
        Ok(store)
    }

    /// What the files are among.
    pub(crate) fn files(&self) -> &Arc<dyn Files> {
        &self.inner.files
    }

    /// Where the files are.
    pub(crate) fn folder(&self) -> &Path {
        &self.inner.folder
    }

    /// The snapshot that counts.
    pub fn newest(&self) -> Option<SnapshotFile> {
        self.newest_slot().clone()
    }

    /// The size of the newest snapshot; 0 when there is none.
    pub(crate) fn newest_bytes(&self) -> u64 {
        self.newest_slot().as_ref().map_or(0, SnapshotFile::bytes)
    }

    /// Writes a snapshot from the chunks of its body, and makes it the one that counts. It is on disk when
    /// this returns. `ids_used`: the largest node id given out so far. Blocks; holds one chunk at a time.
    pub async fn write<C: AsRef<[u8]>>(
        &self,
        meta: SnapshotMeta,
        ids_used: u64,
        chunks: impl IntoIterator<Item = C>,
    ) -> io::Result<SnapshotFile> {
        let name = file_name(&meta);
        let (temporary, file) = self.temporary()?;
        let header = Header::new(self.inner.cluster_id, meta, ids_used);
        let written = write_to(&temporary, &file, &header, chunks).await;
        let placed = match written {
            Ok(()) => self.sync_and_place(&temporary, &file, header, &name).await,
            Err(error) => Err(error),
        };
        if placed.is_err() {
            // The next open removes it if this can't: a full disk should at least get its room back.
            drop(self.files().remove(&temporary));
        }
        placed
    }

    /// Begins to take in a snapshot from another member.
    pub fn receive(&self) -> io::Result<SnapshotReceiver> {
        let (path, file) = self.temporary()?;
        Ok(SnapshotReceiver { store: self.clone(), path, file, received: 0, is_finished: false })
    }

    /// Makes a checked snapshot the one that counts, if it isn't. For installing what was received.
    pub async fn keep(&self, snapshot: SnapshotFile) -> io::Result<SnapshotFile> {
        let name = file_name(&snapshot.meta);
        if snapshot.path == self.inner.folder.join(&name) {
            return Ok(snapshot);
        }
        if snapshot.path.parent() == Some(&self.inner.folder) {
            return self.place(snapshot, &name).await;
        }
        // A file of another store: that one keeps its own.
        let mut receiver = self.receive()?;
        while receiver.received() < snapshot.bytes() {
            receiver.take(receiver.received(), &snapshot.read_at(receiver.received(), CHUNK_BYTES_MAX)?)?;
        }
        self.place(receiver.finish().await?, &name).await
    }

    /// Reads a file completely, and gives a handle to it if it is whole and of this cluster.
    fn check(&self, path: &Path) -> io::Result<SnapshotFile> {
        let file = self.files().open(path, Access::Read).map_err(|error| in_file("open", path, &error))?;
        let bytes = file.bytes().map_err(|error| in_file("open", path, &error))?;
        let from = BufReader::new(FileFrom { file: Arc::clone(&file), at: 0 });
        let whole = Reader::begin(from).and_then(|mut reader| {
            while reader.next_chunk()?.is_some() {}
            Ok(reader)
        });
        let whole = whole.map_err(|error| in_file("read", path, &error))?;
        let (found, expected) = (&whole.header().cluster, self.inner.cluster_id.to_string());
        if *found != expected {
            let text = format!("it belongs to cluster {found}, expected cluster {expected}");
            return Err(in_file("read", path, &io::Error::new(io::ErrorKind::InvalidInput, text)));
        }
        let Header { meta, ids_used, .. } = whole.header();
        Ok(SnapshotFile {
            files: Arc::clone(self.files()),
            path: path.to_owned(),
            file,
            meta: meta.clone(),
            ids_used: *ids_used,
            bytes,
        })
    }

    fn look_at_files(&self) -> Result<Found, FolderError> {
        let (mut whole, mut damaged) = (Vec::new(), Vec::new());
        for path in snapshot_files(&**self.files(), &self.inner.folder)? {
            if whole.len() == SNAPSHOTS_KEPT {
                break;
            }
            match self.check(&path) {
                Ok(snapshot) => whole.push(snapshot),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    damaged.push((path, error.to_string()));
                }
                // Another cluster's, a later version's, or a disk that can't be read: not ours to set aside.
                Err(error) => return Err(doing("use snapshot", &path)(error)),
            }
        }
        Ok(Found { whole, damaged })
    }

    fn temporary(&self) -> io::Result<(PathBuf, Arc<dyn OpenFile>)> {
        let number = self.inner.temporaries.fetch_add(1, Ordering::Relaxed);
        let path = self.inner.folder.join(format!("incoming-{number}{TEMPORARY_SUFFIX}"));
        let file = self.files().open(&path, Access::New);
        Ok((path.clone(), file.map_err(|error| in_file("make", &path, &error))?))
    }

    async fn sync_and_place(
        &self,
        path: &Path,
        file: &Arc<dyn OpenFile>,
        header: Header,
        name: &str,
    ) -> io::Result<SnapshotFile> {
        file.sync_data().await.map_err(|error| in_file("sync", path, &error))?;
        let failed = |error: io::Error| in_file("write", path, &error);
        let bytes = file.bytes().map_err(failed)?;
        let file = self.files().open(path, Access::Read).map_err(failed)?;
        let Header { meta, ids_used, .. } = header;
        let (files, path) = (Arc::clone(self.files()), path.to_owned());
        self.place(SnapshotFile { files, path, file, meta, ids_used, bytes }, name).await
    }

    /// Gives a synced file its name, and removes what it replaces.
    async fn place(&self, snapshot: SnapshotFile, name: &str) -> io::Result<SnapshotFile> {
        let path = self.inner.folder.join(name);
        put_in_place(&**self.files(), &snapshot.path, &path).await.map_err(io::Error::other)?;
        let placed = SnapshotFile { path, ..snapshot };
        let mut newest = self.newest_slot();
        if newest.as_ref().is_none_or(|newest| newest.meta.last_log_id <= placed.meta.last_log_id) {
            *newest = Some(placed.clone());
        }
        drop(newest);
        self.remove_old()?;
        Ok(placed)
    }

    fn remove_old(&self) -> io::Result<()> {
        let files = snapshot_files(&**self.files(), &self.inner.folder).map_err(io::Error::other)?;
        for path in files.iter().skip(SNAPSHOTS_KEPT) {
            self.files().remove(path).map_err(|error| in_file("remove", path, &error))?;
        }
        Ok(())
    }

    fn newest_slot(&self) -> MutexGuard<'_, Option<SnapshotFile>> {
        self.inner.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Syncs as it goes, so that what is left for the last sync is little.
async fn write_to<C: AsRef<[u8]>>(
    path: &Path,
    file: &Arc<dyn OpenFile>,
    header: &Header,
    chunks: impl IntoIterator<Item = C>,
) -> io::Result<()> {
    let failed = |error: io::Error| in_file("write", path, &error);
    let mut writer = Writer::begin(BufWriter::new(FileTo(Arc::clone(file))), header).map_err(failed)?;
    let mut unsynced = 0;
    for chunk in chunks {
        writer.chunk(chunk.as_ref()).map_err(failed)?;
        unsynced += chunk.as_ref().len();
        if unsynced >= UNSYNCED_BYTES_MAX {
            file.sync_data().await.map_err(|error| in_file("sync", path, &error))?;
            unsynced = 0;
        }
    }
    writer.end().and_then(|mut buffered| buffered.flush()).map_err(failed)
}

/// The snapshot files in `folder` by name, newest first.
pub(crate) fn snapshot_files(files: &dyn Files, folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let mut found = files_named(files, folder, |name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))?;
    found.sort_by(|a, b| b.cmp(a));
    Ok(found)
}

fn remove_temporaries(files: &dyn Files, folder: &Path) -> Result<(), FolderError> {
    for path in files_named(files, folder, |name| name.ends_with(TEMPORARY_SUFFIX))? {
        files.remove(&path).map_err(doing("remove half written snapshot", &path))?;
    }
    Ok(())
}

fn files_named(
    files: &dyn Files,
    folder: &Path,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<PathBuf>, FolderError> {
    let mut found = files.list(folder).map_err(doing("list folder", folder))?;
    found.retain(|path| path.file_name().and_then(OsStr::to_str).is_some_and(&is_wanted));
    Ok(found)
}

/// Names sort like the log ids they carry. A snapshot of nothing, which the library asks for in a log that was
/// purged before anything was applied, has the lowest name, and the first real one replaces it.
fn file_name(meta: &SnapshotMeta) -> String {
    let (term, index) = meta.last_log_id.map_or((0, 0), |last| (last.leader_id.term, last.index));
    format!("{PREFIX}{term:020}-{index:020}{SUFFIX}")
}

fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".damaged");
    PathBuf::from(name)
}
