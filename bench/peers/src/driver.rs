//! What a load needs of a lock service.
//!
//! Owns: the one shape that all systems are driven through. Never: a system's name.

use crate::servers::Servers;
use anyhow::bail;
use async_trait::async_trait;
use std::time::Duration;

/// Connections that callers share, in each system alike: as many as a fleet of 16 processes would have.
pub(crate) const CONNECTIONS: usize = 16;
/// How long a lease lasts. Longer than a run's stalls, so that none ends by itself.
pub(crate) const TTL: Duration = Duration::from_secs(60);

/// A system that runs, and can be asked for locks.
#[async_trait]
pub(crate) trait System: Send + Sync {
    /// Its processes.
    fn servers(&mut self) -> &mut Servers;

    /// As many callers, over at most [`CONNECTIONS`] connections.
    async fn callers(&self, count: usize) -> anyhow::Result<Vec<Box<dyn Caller>>>;

    /// The place in [`Servers`] of the process that leads.
    async fn leader(&self) -> anyhow::Result<usize> {
        bail!("it has no leader")
    }
}

/// One caller. It holds any number of locks, by their names.
#[async_trait]
pub(crate) trait Caller: Send {
    /// Waits until the lock on `resource` is this caller's.
    async fn acquire(&mut self, resource: &str) -> anyhow::Result<()>;

    /// Gives the lease of a lock that is held its full time again.
    async fn renew(&mut self, resource: &str) -> anyhow::Result<()>;

    /// Gives a lock back, and returns when that is certain.
    async fn release(&mut self, resource: &str) -> anyhow::Result<()>;
}
