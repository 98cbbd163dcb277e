//! What a replica needs to be told, and why it doesn't open.

use crate::data_folder::{ClusterId, FolderError};
use crate::observer::Observer;
use crate::raft_types::Member;
use crate::transport::TlsError;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a replica needs to be told.
#[derive(Clone, Debug)]
pub struct ReplicaConfig {
    /// The data folder.
    pub data: PathBuf,
    /// How this node is reached; goes into the membership.
    pub member: Member,
    /// How often a leader tells the others that it lives.
    pub heartbeat: Duration,
    /// The least time without a leader before a node stands for election; at most twice that.
    pub election: Duration,
    /// A snapshot is made once the log has grown by this many bytes, and by as many as the last snapshot has.
    pub snapshot_every_bytes: u64,
    /// Entries that stay in the log behind a snapshot, so that a member that was away for a moment needs no snapshot.
    pub entries_kept: u64,
    /// Who looks on while the log is applied.
    pub observer: Option<Arc<dyn Observer>>,
}

impl ReplicaConfig {
    /// The usual settings for a node with this data folder.
    pub fn new(data: impl Into<PathBuf>, member: Member) -> Self {
        Self {
            data: data.into(),
            member,
            heartbeat: Duration::from_millis(50),
            election: Duration::from_millis(200),
            snapshot_every_bytes: 64 << 20,
            entries_kept: 1_000,
            observer: None,
        }
    }
}

/// Why a replica doesn't open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data folder can't be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A node can't be made where one lives already.
    #[error(
        "data folder {} holds node {node_id} of cluster {cluster_id} already; start it as it is, or give the new node \
         an empty folder", folder.display()
    )]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// The node there.
        node_id: u64,
        /// Its cluster.
        cluster_id: ClusterId,
    },
    /// The state can't be read from the snapshot.
    #[error("restore the state from the newest snapshot: {0}")]
    State(std::io::Error),
    /// The certificate of this node isn't for its id.
    #[error(transparent)]
    Certificate(#[from] TlsError),
    /// The consensus library refuses.
    #[error("start the replica: {0}")]
    Start(String),
}
