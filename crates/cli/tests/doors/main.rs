//! Each verb against real nodes, through the native door and over HTTP: what differs, and what mustn't.
//!
//! Owns: which door is taken, that both say the same, `exec` through native doors, and `nc`. Never: the weather; a
//! scripted server has it, in `command_line`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]

mod acquire;
mod choice;
mod dashes;
mod exec;
mod exec_loss;
mod nc;
#[path = "../node/mod.rs"]
mod node;
mod same;
mod support;
mod undecided;
