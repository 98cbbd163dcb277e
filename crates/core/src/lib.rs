//! The locks. Data in, data out: no IO, no clock, no randomness, no async.
//!
//! Owns: what every command does to every lock, and the bytes of entries and snapshots. Never: Raft, a wire
//! format, a node's own setting; equal entries in equal order give equal states, answers and bytes everywhere.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm, clippy::match_wildcard_for_single_variants)]

extern crate alloc;

pub mod command;
pub mod event;
pub mod reply;
pub mod view;

mod apply;
mod codec;
mod due;
mod effects;
mod grant;
mod index;
mod invariants;
mod lease;
#[cfg(kunci_plants)]
pub mod planted;
mod proof;
mod request;
mod snapshot;
mod spread;
mod table;

pub use codec::{DecodeError, ENTRY_FORMAT, SNAPSHOT_FORMAT};
pub use request::RequestKey;
pub use snapshot::{Restore, Snapshot};
pub use table::{FEATURE_LEVEL, LockTable};
