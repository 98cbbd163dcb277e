//! The faults, each shown on a running cluster.

mod scene;
mod single;
