//! The runtime of a world.
//!
//! Owns: that tokio's own draws follow the seed: which branch of a `select!` is looked at first, which of a watch's waiters
//! wakes first. Never: a driver of the system; nothing here waits for a socket or a thread.
//!
//! Tokio seeds that generator from a counter of the whole program, which no replaced source of random bits can reach, and
//! lets it be set only with `--cfg tokio_unstable`. `cargo xtask sim` builds with it; without it a world runs as well, but
//! its seed doesn't bring it back.

use std::io;
use tokio::runtime::{Builder, Runtime};

/// Whether the same seed gives the same world again.
pub const IS_REPRODUCIBLE: bool = cfg!(tokio_unstable);

/// A runtime for this thread alone, whose time passes only when nothing can run.
pub(crate) fn of(seed: u64) -> io::Result<Runtime> {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    follow(&mut builder, seed);
    builder.build()
}

#[cfg(tokio_unstable)]
fn follow(builder: &mut Builder, seed: u64) {
    builder.rng_seed(tokio::runtime::RngSeed::from_bytes(&seed.to_le_bytes()));
}

#[cfg(not(tokio_unstable))]
fn follow(_: &mut Builder, _: u64) {}
