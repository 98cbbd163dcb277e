//! Agreement: the lock table behind a replicated, durable log.
//!
//! Owns: everything that names the consensus library; the order of commands, their time, and who waits for
//! which answer. Never: a front door, or a rule of the business.

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")
)]

pub mod data_folder;
pub mod log_store;
pub mod measures;
pub mod raft_types;
pub mod repair;
pub mod snapshot_store;
pub mod storage;
pub mod transport;

/// What the fuzz targets read: as from a disk, or from another member. Only there with `--cfg fuzzing`.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::log_store::plain::fuzz::{log_file, sealed_record};
    pub use crate::snapshot_store::format::fuzz::{sealed_snapshot, snapshot_file};
    pub use crate::transport::fuzz::{body as peer_frame, sealed_handshake, stream as peer_stream};
}

mod answered;
mod batcher;
mod call;
mod clock;
mod config;
mod disk;
mod events;
mod hand_over;
mod lead;
mod leader;
mod log_length;
mod members;
mod observer;
mod open;
#[cfg(kunci_plants)]
pub mod planted;
mod pulse;
mod readings;
mod replica;
mod runtime;
mod seat;
mod state_machine;
mod status;
mod succession;
mod term;
mod vitals;
mod waiting_room;
mod wall_clock;

pub use answered::{Answered, Position, Refusal};
pub use call::{Call, CallOutcome};
pub use config::{OpenError, ReplicaConfig};
pub use data_folder::ClusterId;
pub use events::{Compacted, Watch};
pub use lead::{Lead, NoLead};
pub use members::{Added, ChangeRefused, Removed};
pub use observer::{Observer, Seen, SeenEntry};
pub use raft_types::Member;
pub use replica::Replica;
pub use state_machine::StateMachine;
pub use status::{DISK_RESERVE_BYTES, DiskState, MemberStatus, NodeStatus, Readings, Role};
pub use storage::Storage;
pub use transport::{BoxedStream, CallsFrom, Invited, PeerDoor, PeerSecurity, PeerTls, TlsError};
