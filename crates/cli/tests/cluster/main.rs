//! Several nodes as processes on one machine: what an operator does with them, and what the clients see of it.
//!
//! Owns: `kunci cluster`, `kunci dev-cluster`, and stopping in good order. Never: faults of networks and disks; see
//! tests/faults.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]

mod alerts;
mod dev;
mod exec;
mod membership;
mod metrics;
#[path = "../node/mod.rs"]
mod node;
mod proxy;
mod stop;
mod support;
mod tls;
mod top;
mod tracing;
mod tty;
