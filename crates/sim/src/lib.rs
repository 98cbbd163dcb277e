//! The simulated world: many cluster-hours of the product's own replica, server and client code on one thread.
//!
//! Owns: a network, disks, clocks and processes that follow a seed; the faults; the load; what is checked. Never: a model
//! of the product. What runs here is the product, over seams that it has anyway.

pub mod clock;
pub mod disk;
pub mod faults;
pub mod http;
pub mod invariants;
pub mod network;
pub mod node;
pub mod plan;
pub mod plants;
pub mod randomness;
pub mod report;
pub mod runtime;
pub mod trace;
pub mod workload;
pub mod world;

mod log;
