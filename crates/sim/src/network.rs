//! The network of a simulated world: byte streams with delay, loss and cuts.
