//! One simulated world, from its seed to its last check.
