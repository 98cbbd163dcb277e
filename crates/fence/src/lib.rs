//! The protected side of a lock: compares fencing tokens, and turns late writers away where it counts.
//!
//! Owns: the gate and its ready-made places: a file, PostgreSQL, Redis, object stores, HTTP. Never: talks to a lock
//! service in order to decide; a token and what was admitted before are all that it takes.

#[cfg(feature = "tower")]
pub mod claim;
pub mod gate;
#[cfg(feature = "tower")]
pub mod layer;
#[cfg(feature = "object-store")]
pub mod object;
#[cfg(feature = "tower")]
pub mod passage;
pub mod postgres;
#[cfg(feature = "proxy")]
pub mod proxy;
pub mod redis;
#[cfg(feature = "report")]
pub mod report;
