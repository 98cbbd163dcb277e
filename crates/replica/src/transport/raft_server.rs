//! What other members ask of this node.
//!
//! Owns: one incoming connection at a time, from its first frame to its end, and that a node speaks for itself
//! only. Never: decides; the consensus library does. Next: `raft_server/appends.rs`, `raft_server/answers.rs`,
//! `snapshot_link/receive.rs`.
//!
//! A connection ends when the other end closes it or sends what it may not, when nothing comes for long, or when
//! the replica has stopped. Nothing that comes in here can stop the replica (trap 8 of the design).

mod answers;
mod appends;

use super::dial::Dialer;
use super::door::Incoming;
use super::handshake::Purpose;
use super::roster::Roster;
use super::snapshot_link::{self, HalfReceived};
use crate::pulse::{Census, Pulse};
use crate::replica::Raft;
use crate::snapshot_store::SnapshotStore;
use crate::succession::Succession;
use std::io;
use std::sync::Arc;

/// What a pulse is answered with; it is told who sends it.
pub(crate) type OnPulse = Arc<dyn Fn(u64, Pulse) -> Census + Send + Sync>;

/// What incoming connections are served with. A clone is another handle to the same.
#[derive(Clone)]
pub(crate) struct Host {
    pub(super) raft: Raft,
    pub(super) snapshots: SnapshotStore,
    pub(super) roster: Roster,
    pub(super) succession: Succession,
    pub(super) on_pulse: OnPulse,
    /// The snapshot that is coming in. One for the node, whatever number of connections there is.
    pub(super) half_received: HalfReceived,
}

impl Host {
    pub(crate) fn new(raft: Raft, snapshots: SnapshotStore, dialer: Dialer, on_pulse: OnPulse) -> Self {
        let (roster, half_received) = (dialer.roster().clone(), HalfReceived::default());
        let succession = Succession::new(raft.clone(), dialer);
        Self { raft, snapshots, roster, succession, on_pulse, half_received }
    }
}

/// Why a connection ended before the other end closed it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    /// The connection broke, or what came can't be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Nothing came.
    #[error("nothing came for long")]
    Idle,
    /// The other end did what it may not.
    #[error("{0}")]
    Refused(String),
    /// This replica has stopped.
    #[error("the replica has stopped: {0}")]
    Stopped(String),
}

/// Serves one connection of the purposes append, ask and snapshot until it ends.
pub(crate) async fn serve(host: Host, incoming: Incoming) {
    let Incoming { from, purpose, connection } = incoming;
    let ended = match purpose {
        Purpose::Append => appends::serve(&host, from, connection).await,
        Purpose::Ask => answers::serve(&host, from, connection).await,
        Purpose::Snapshot => snapshot_link::receive(&host, from, connection).await,
        Purpose::Calls | Purpose::Door => Ok(()),
    };
    match ended {
        Ok(()) => tracing::debug!(from, %purpose, "a member closed its connection"),
        Err(Ended::Refused(what)) => tracing::warn!(from, %purpose, what, "ended the connection of a member"),
        Err(ended) => tracing::debug!(from, %purpose, %ended, "the connection of a member ended"),
    }
    if purpose == Purpose::Append {
        host.succession.connection_ended(from).await;
    }
}
