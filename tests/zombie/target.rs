//! A protected resource, as the zombie test sees it.
//!
//! Owns: what each target has to bring along: a file with both traits and a `#[test]` as in `redis.rs`, a `mod` line in
//! `main.rs`, and an arm in `worker.rs` where a worker process finds its target. Never: a word about locks or leases; a token is all that a target is shown.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// Whether writes go through the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fence {
    /// As the documentation says that one should write.
    On,
    /// As one writes to a store that knows nothing of tokens: the control, which shows what the fence is for.
    Off,
}

/// A write that the fence turned away, with what it said: the token that it found, and the larger one that it has kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rejected {
    pub(crate) found: u64,
    pub(crate) kept: u64,
}

/// The protected side: a server that a user would have, with the fence that we ship. It is ended when it is dropped, also
/// by a panic.
///
/// An *item* is one value in it, guarded by the resource of the same name. Names have letters, digits, `-` and `/`.
pub(crate) trait Target: Sized + Sync {
    /// What it is called in reports, and by `cargo xtask zombie --only`: the name of its module.
    const NAME: &'static str;
    /// How a worker writes to it.
    type Writer: Writer;

    /// Starts it, with everything that it needs, in an empty folder of its own.
    fn start(folder: &Path) -> Self;

    /// All that a worker process needs to reach it, in one line.
    fn address(&self) -> String;

    /// An item's value as it is now; none before the first write.
    async fn value(&self, item: &str) -> Option<String>;
}

/// A worker's way to a target, in the worker's own process. It is opened once: a late writer's connection has been open
/// all the while.
pub(crate) trait Writer: Sized {
    /// Opens it for one item.
    async fn open(address: &str, item: &str) -> Self;

    /// Writes a value of one line under a token. Everything but a rejection is a panic.
    async fn write(&mut self, fence: Fence, token: u64, value: &str) -> Result<(), Rejected>;
}
