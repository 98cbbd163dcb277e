//! The data folder of a node, and the decision whether it may be used.
//!
//! Owns: the layout (`DATA/identity`, `DATA/lock`, `DATA/log/`, `DATA/snapshots/`), one process per folder,
//! and the checks that identity, log and snapshots belong together. Never: starts a node as new beside data of
//! an old one; that could make it vote twice, or serve an empty state as the cluster's.

mod durable;
mod error;
mod identity;
mod lock;

use crate::log_store::{LogOptions, LogStore, scan};
use crate::snapshot_store::SnapshotStore;
use crate::storage::{Files, Storage, at_once};
pub(crate) use durable::{make_folder, put_in_place, sync_folder};
pub use error::FolderError;
pub(crate) use error::doing;
pub use identity::{ClusterId, FOLDER_FORMAT, Identity};
pub(crate) use identity::{Started, identity_file};
use kunci_types::Revision;
use lock::FolderLock;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Who the configuration says this node is. `None`: whoever the folder says; a new folder gets node 1 and a
/// new cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    /// The node.
    pub node_id: Option<u64>,
    /// The cluster.
    pub cluster_id: Option<ClusterId>,
    /// For a new cluster: every token will be larger than this.
    pub token_floor: Option<Revision>,
}

/// A data folder that this process has for itself until this is dropped. Keep it as long as the stores live.
#[derive(Debug)]
pub struct DataFolder {
    storage: Storage,
    path: PathBuf,
    identity: Identity,
    _lock: FolderLock,
}

/// The log and the snapshots of a data folder.
pub struct Stores {
    /// The log and the vote.
    pub log: LogStore,
    /// The snapshots.
    pub snapshots: SnapshotStore,
}

impl DataFolder {
    /// Takes the folder at `path`. Makes it, with a new identity, when nothing is there.
    pub fn open(path: &Path, expected: Expected) -> Result<Self, FolderError> {
        at_once(Self::open_on(&Storage::system(), path, expected))
    }

    /// As [`DataFolder::open`], on any storage.
    pub async fn open_on(storage: &Storage, path: &Path, expected: Expected) -> Result<Self, FolderError> {
        let files = &**storage.files();
        make_folder(files, path).await?;
        let lock = FolderLock::take(files, path)?;
        let identity = match Identity::read(files, path)? {
            Some(identity) => identity,
            None => new_identity(files, path, expected).await?,
        };
        check_expected(path, &identity, expected)?;
        Ok(Self { storage: storage.clone(), path: path.to_owned(), identity, _lock: lock })
    }

    /// Takes a folder that must exist, without making anything.
    pub(crate) fn open_existing(storage: &Storage, path: &Path) -> Result<Self, FolderError> {
        let files = &**storage.files();
        files.list(path).map_err(doing("open data folder", path))?;
        let lock = FolderLock::take(files, path)?;
        let Some(identity) = Identity::read(files, path)? else {
            let found = existing_data(files, path)?.unwrap_or_else(|| "nothing of a node".to_owned());
            return Err(FolderError::IdentityMissing { folder: path.to_owned(), found });
        };
        Ok(Self { storage: storage.clone(), path: path.to_owned(), identity, _lock: lock })
    }

    /// Which node of which cluster this folder belongs to.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Where the folder is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the log is.
    pub fn log_folder(&self) -> PathBuf {
        self.path.join("log")
    }

    /// Where the snapshots are.
    pub fn snapshots_folder(&self) -> PathBuf {
        self.path.join("snapshots")
    }

    /// Opens log and snapshots, and checks that they belong together.
    pub async fn open_stores(&self, options: &LogOptions) -> Result<Stores, FolderError> {
        let files = self.storage.files();
        // An earlier process may have died before it could sync the name of the identity.
        sync_folder(&**files, &self.path).await?;
        let (log_folder, snapshots_folder) = (self.log_folder(), self.snapshots_folder());
        make_folder(&**files, &log_folder).await?;
        make_folder(&**files, &snapshots_folder).await?;
        let (log, _) = LogStore::open_on(&self.storage, &log_folder, options).await?;
        let io = doing("read log", &log_folder);
        let (vote, last, purged) =
            (log.vote().map_err(&io)?, log.last().map_err(&io)?, log.purged().map_err(&io)?);
        let started = Started::new(Arc::clone(files), &self.path, self.identity);
        if vote.is_some() {
            // A crash between the first vote and its note: make up for it.
            started.note().await?;
        } else {
            self.check_is_new(last.map(|last| last.index), &snapshots_folder)?;
        }
        let (cluster_id, purged) = (self.identity.cluster_id, purged.map(|purged| purged.index));
        let snapshots = SnapshotStore::open_on(&self.storage, &snapshots_folder, cluster_id, purged).await?;
        Ok(Stores { log: log.with_started(started), snapshots })
    }

    /// No vote is right in a folder where nothing ever happened, and nowhere else.
    fn check_is_new(&self, last_index: Option<u64>, snapshots_folder: &Path) -> Result<(), FolderError> {
        let found = if let Some(last_index) = last_index {
            format!("entries up to index {last_index} without a vote")
        } else if has_snapshots(&**self.storage.files(), snapshots_folder)? {
            "no entry, beside snapshots".to_owned()
        } else if self.identity.has_started {
            "no entry at all".to_owned()
        } else {
            return Ok(());
        };
        Err(FolderError::VoteMissing { folder: self.path.clone(), found })
    }
}

async fn new_identity(files: &dyn Files, path: &Path, expected: Expected) -> Result<Identity, FolderError> {
    if let Some(found) = existing_data(files, path)? {
        return Err(FolderError::IdentityMissing { folder: path.to_owned(), found });
    }
    let random = || {
        ClusterId::random().map_err(|error| FolderError::Io {
            what: "draw a cluster id for",
            path: path.to_owned(),
            source: std::io::Error::other(error.to_string()),
        })
    };
    let identity = Identity {
        cluster_id: expected.cluster_id.map_or_else(random, Ok)?,
        node_id: expected.node_id.unwrap_or(1),
        token_floor: expected.token_floor.unwrap_or(Revision::ZERO),
        has_started: false,
    };
    identity.write(files, path).await?;
    Ok(identity)
}

fn check_expected(path: &Path, identity: &Identity, expected: Expected) -> Result<(), FolderError> {
    if let Some(node_id) = expected.node_id
        && node_id != identity.node_id
    {
        return Err(FolderError::OtherNode {
            folder: path.to_owned(),
            found: identity.node_id,
            expected: node_id,
        });
    }
    if let Some(cluster_id) = expected.cluster_id
        && cluster_id != identity.cluster_id
    {
        return Err(FolderError::OtherCluster {
            file: path.to_owned(),
            found: identity.cluster_id,
            expected: cluster_id,
        });
    }
    Ok(())
}

/// What of an earlier life is in the folder, if anything.
fn existing_data(files: &dyn Files, path: &Path) -> Result<Option<String>, FolderError> {
    if scan::has_log(files, &path.join("log"))? {
        return Ok(Some("a log".to_owned()));
    }
    if has_snapshots(files, &path.join("snapshots"))? {
        return Ok(Some("snapshots".to_owned()));
    }
    Ok(None)
}

fn has_snapshots(files: &dyn Files, folder: &Path) -> Result<bool, FolderError> {
    Ok(files.exists(folder) && !crate::snapshot_store::snapshot_files(files, folder)?.is_empty())
}
