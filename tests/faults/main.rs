//! Real processes and real faults: three nodes in network namespaces of their own, under a recorded workload whose
//! history must be explained by the log's order and the guarantees S1 to S8.
//!
//! Read `cases` for what is shown, `world` for the faults, `workload` for the load and `checks` for what a history
//! must keep to. Everything needs root and Linux, and the programs in `world/programs.rs`; nothing is skipped.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by a panic, in its helpers too, and says what it measured"
)]

mod cases;
mod checks;
mod client;
mod clock;
mod run;
mod store;
mod workload;
mod world;
