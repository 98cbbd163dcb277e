//! The faults: one file for each kind, drawn from the seed.
