//! Load on a cluster, and how it copes: what `kunci bench` runs.
//!
//! Through native doors and `kunci-client`, or the HTTP of one node, as any user's program. Requests are sent one by one,
//! through native doors with [`Client::ask`](kunci_client::Client::ask), so that each has its own latency; what a lock's
//! background renewals cost is measured by the workload that renews.
//!
//! A closed loop has each client wait for its answer before it goes on: it finds the highest throughput, and hides how
//! long a stall is. An open loop gives each operation a time to start at, and counts its latency from then, whether or not
//! a client was free: nothing is omitted because the cluster was slow.
//!
//! Owns: when an operation starts, what is counted, how it reads. Never: a private door into a server, or a lock outside
//! `bench/<random>/`.
#![forbid(unsafe_code)]

mod bench;
mod book;
mod caller;
mod door;
mod phases;
mod plan;
mod player;
mod progress;
mod report;
mod schedule;
mod stage;

pub use bench::{Bench, BenchError, Target};
pub use plan::{InvalidPlan, Pace, Plan, Workload};
pub use progress::{Phase, Progress};
pub use report::{EndedBy, KindReport, Latency, Report};
