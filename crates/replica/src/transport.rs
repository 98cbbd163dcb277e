//! The way to the other members: what every connection between nodes has in common, and what it is for.
//!
//! Owns: the peer protocol. A connection begins with a handshake (`handshake.rs`) that says who calls whom, in which
//! cluster, and for which purpose; then come frames (`frame.rs`), except for calls, which are HTTP/2. Never: decides
//! who is a member (the roster says that), or anything about a lock.

mod calls;
mod dial;
mod door;
mod frame;
#[cfg(fuzzing)]
pub(crate) mod fuzz;
mod handshake;
mod links;
mod raft_client;
mod raft_frames;
mod raft_server;
#[cfg(test)]
mod raft_tests;
mod roster;
mod snapshot_link;
#[cfg(test)]
mod testing;
mod tls;

pub use calls::CallsFrom;
pub use door::{Invited, PeerDoor};
pub use links::{Arrival, BoxedStream, Doorway, Links, Stream, TcpLinks};
pub use tls::{PeerSecurity, PeerTls, TlsError};

pub(crate) use calls::dispatch;
pub(crate) use dial::{Dialer, Who};
pub(crate) use door::DoorGuard;
pub(crate) use frame::Connection;
pub(crate) use handshake::Purpose;
pub(crate) use raft_client::{Asks, PeerNetworks};
pub(crate) use raft_server::Host;
pub(crate) use roster::{Me, Roster};
