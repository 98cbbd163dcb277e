//! The node: a replica and the doors to it.
//!
//! Owns: settings, the front doors, start and stop of a process. Never: a rule of the locks, or a door that calls
//! another door.

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")
)]

pub mod audit;
pub mod config;
pub mod http;
pub mod metrics;
pub mod native;
pub mod node;
#[cfg(feature = "otlp")]
mod otlp;
pub mod service;
mod streams;
mod tcp;
mod trace;

pub use kunci_replica::repair::{RepairReport, repair};
pub use streams::{ClientStream, Listener};
