//! The clients of a simulated world, and what they do.
