//! Agreement: the lock table behind a replicated, durable log.
//!
//! Owns: everything that names the consensus library; the order of commands, their time, and who waits for
//! which answer. Never: a front door, or a rule of the business.

pub mod data_folder;
pub mod log_store;
pub mod raft_types;
pub mod repair;
pub mod snapshot_store;

mod answered;
mod batcher;
mod call;
mod clock;
mod config;
mod events;
mod leader;
mod network;
mod replica;
mod state_machine;
mod status;
mod waiting_room;

pub use answered::{Answered, Position, Refusal};
pub use call::{Call, CallOutcome};
pub use config::{OpenError, ReplicaConfig};
pub use data_folder::ClusterId;
pub use events::{Compacted, Watch};
pub use raft_types::Member;
pub use replica::Replica;
pub use state_machine::StateMachine;
pub use status::{MemberStatus, NodeStatus, Role};
