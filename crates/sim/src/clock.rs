//! The clocks of a simulated world: how fast each runs, and what each shows.
