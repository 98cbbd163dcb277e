//! What a node stands on.
//!
//! Owns: the seam between a node's life and where it lives: the system here, a simulated world in the simulator. Never:
//! opens anything.

use crate::audit::AuditSettings;
use crate::http::HttpLimits;
use crate::native::NativeLimits;
use kunci_replica::{PeerDoor, ReplicaConfig, Storage};
use std::net::SocketAddr;

/// What a node stands on: open doors, a disk, and what its settings say.
pub struct Ground<L> {
    /// Where clients come in.
    pub listeners: Listeners<L>,
    /// Where HTTP is, for people.
    pub http: SocketAddr,
    /// Where other nodes come in, and the way to them.
    pub peers: PeerDoor,
    /// Where the data is.
    pub storage: Storage,
    /// The data folder, how this node is reached, and its times.
    pub replica: ReplicaConfig,
    /// How the audit log is kept, if it is. Its files are the system's, whatever `storage` is.
    pub audit: Option<AuditSettings>,
    /// What the HTTP door allows a peer.
    pub http_limits: HttpLimits,
    /// What the native door allows a peer.
    pub native_limits: NativeLimits,
    /// What the node does that belongs to no cluster.
    pub founding: Founding,
}

/// Where clients come in.
pub struct Listeners<L> {
    /// The HTTP door's.
    pub http: L,
    /// The native door's.
    pub native: L,
}

/// What a node does that belongs to no cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Founding {
    /// It forms one of its own.
    AtOnce,
    /// It waits, as its settings say.
    WhenAsked,
    /// It waits, since other machines can reach it.
    WhenAskedSinceReachable,
}

/// What asks a node to stop.
pub trait StopSignals: Send {
    /// The number of the next signal. May be dropped and called again.
    fn next(&mut self) -> impl Future<Output = i32> + Send;

    /// Does `work`, unless a signal comes first; its number then.
    fn or_else<T: Send>(
        &mut self,
        work: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Result<T, i32>> + Send {
        async {
            tokio::select! {
                biased;
                signal = self.next() => Err(signal),
                done = work => Ok(done),
            }
        }
    }
}
