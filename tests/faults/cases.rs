//! The faults, each shown on a running cluster.

mod asking;
mod disks;
mod everything;
mod flood;
mod isolation;
mod late_writer;
mod leader_death;
mod leases;
mod members;
mod preferred;
mod queues;
mod restarts;
mod scene;
mod single;
mod soak;
mod stalled_leader;
mod wall_clocks;
