//! The node: a replica and the doors to it.
//!
//! Owns: settings, the front doors, start and stop of a process. Never: a rule of the locks, or a door that calls
//! another door.

pub mod config;
pub mod http;
pub mod native;
pub mod node;
pub mod service;
mod tcp;

pub use kunci_replica::repair::{RepairReport, repair};
