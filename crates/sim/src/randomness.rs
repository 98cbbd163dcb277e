//! The random source of a simulated world: every bit that the process asks the system for follows the seed.
