//! The binary against a scripted server: exit codes, output, and what `exec` does when things go wrong.
//!
//! The server here has one lock and a weather; the real one is run by other tests.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic, in its helpers too")]

mod acquire;
mod exec_codes;
mod exec_interrupt;
mod exec_loss;
mod exec_signals;
mod exec_terminal;
mod fake;
#[path = "../processes/mod.rs"]
mod processes;
mod support;
mod verbs;
mod watch;
