//! Why a data folder can't be used.
//!
//! Owns: the words. Each says what was found, what was expected, and what to do about it.

use super::identity::ClusterId;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What a person does about a member whose data can't be trusted.
const REBUILD: &str = "in a cluster, rebuild this member: stop it, move its data folder away, start it again \
    with an empty one and let the other members fill it; a single node needs its backup";

/// A data folder, or something in it, that this process must not use.
#[derive(Debug, Error)]
pub enum FolderError {
    /// Another process has the folder.
    #[error(
        "data folder {} is in use by {}; stop that process or give this one a data folder of its own",
        folder.display(), process.as_deref().map_or("another process".to_owned(), |id| format!("process {id}"))
    )]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// The id that the other process left in the lock file, if it can be read.
        process: Option<String>,
    },

    /// Data without an identity.
    #[error(
        "data folder {} holds {found} but no identity file; refusing to start as a new node beside existing \
        data; put the identity file back, or {REBUILD}", folder.display()
    )]
    IdentityMissing {
        /// The folder.
        folder: PathBuf,
        /// What is there.
        found: String,
    },

    /// An identity that can't be read.
    #[error(
        "identity file {} is damaged: {what}; refusing to guess which cluster and node this is; put the file \
        back from a backup, or {REBUILD}", file.display()
    )]
    IdentityDamaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },

    /// Written by a later version.
    #[error(
        "{} has format {found}, this version reads up to format {known}; start the version that wrote it, or \
        a later one", file.display()
    )]
    NewerFormat {
        /// The file.
        file: PathBuf,
        /// The format it says it has.
        found: u32,
        /// The newest format known here.
        known: u32,
    },

    /// The folder of another node.
    #[error(
        "data folder {} belongs to node {found}, the configuration says node {expected}; correct the node id \
        or the data folder", folder.display()
    )]
    OtherNode {
        /// The folder.
        folder: PathBuf,
        /// The node in the identity.
        found: u64,
        /// The node that was asked for.
        expected: u64,
    },

    /// Data of another cluster.
    #[error("{} belongs to cluster {found}, expected cluster {expected}; correct the data folder", file.display())]
    OtherCluster {
        /// The file or folder.
        file: PathBuf,
        /// Its cluster.
        found: ClusterId,
        /// The expected cluster.
        expected: ClusterId,
    },

    /// The node took part in a cluster, and its vote is gone.
    #[error(
        "data folder {} belongs to a node that has voted, but its log holds no vote ({found}); without it the \
        node could vote twice in one term, so it refuses to start; put DATA/log back, or {REBUILD}",
        folder.display()
    )]
    VoteMissing {
        /// The folder.
        folder: PathBuf,
        /// What the log holds instead.
        found: String,
    },

    /// A record in the log is damaged.
    #[error(
        "log file {} is damaged at byte {at}: {what}; an entry there may have been acknowledged, so it isn't \
        cut; check the disk, then {REBUILD}", file.display()
    )]
    LogDamaged {
        /// The file.
        file: PathBuf,
        /// Where the damaged record begins.
        at: u64,
        /// What is wrong with it.
        what: String,
    },

    /// No snapshot reaches to where the log begins.
    #[error(
        "the log begins after index {purged}, and {found} in {}; the entries before can't be recovered here; \
        check the disk, then {REBUILD}", folder.display()
    )]
    SnapshotMissing {
        /// The folder of the snapshots.
        folder: PathBuf,
        /// The last index that the log doesn't have any more.
        purged: u64,
        /// What the snapshots are.
        found: String,
    },

    /// A file operation failed.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// Verb and object.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// Puts words around a failed file operation.
pub(crate) fn doing(what: &'static str, path: &Path) -> impl Fn(io::Error) -> FolderError {
    move |source| FolderError::Io { what, path: path.to_owned(), source }
}
