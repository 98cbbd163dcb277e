//! kunci's vocabulary: names, ids, tokens, times and limits.
//!
//! Owns: what each word of the contract may be, and the one door through which a raw value becomes one.
//! Never: a protocol, a storage format, a clock, randomness.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ids;
mod name;
mod origin;
mod policy;
mod time;
mod token;

pub use ids::{Attempt, Caller, LeaseId, Owner, Reason, RequestId};
pub use name::{InvalidText, Metadata, Namespace, ResourceName};
pub use origin::{ClientAddress, Origin, WallTime};
pub use policy::{InvalidPolicy, OutOfPolicy, Policy};
pub use time::{ClusterTime, LockDelay, Ttl, Wait};
pub use token::{FencingToken, InvalidToken, Revision};
