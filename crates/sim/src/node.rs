//! A node of the simulated world: the product's own, on simulated streams.
