//! Several locks at once.
//!
//! Owns: their order, which is the same for everybody, and giving back on every way out. Never: holds a part of them
//! for the caller.

use crate::acquire::{self, Wait, Wanted};
use crate::client::{Client, Core};
use crate::error::{Certainty, Error};
use crate::held::{HeldLock, InDoubt};
use crate::lock::{Options, choices};
use crate::state::Loss;
use futures::future::{Either, join_all, pending, select, select_all};
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Several locks to be acquired, all or none.
///
/// They are taken one after another in the order of their names, so that two who want the same ones never wait for each
/// other; [`wait`](LocksRequest::wait) is for all of them together.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/node.inc"));
/// # fn main() { node::run(async |address| {
/// # let client = kunci_client::Client::connect([address]).await?;
/// let both = client.locks(["accounts/7", "accounts/3"]).acquire().await?;
/// let names: Vec<_> = both.iter().map(|lock| lock.resource().as_str()).collect();
/// assert_eq!(names, ["accounts/3", "accounts/7"]);
/// both.release().await?;
/// # Ok(()) }) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before `acquire` or `try_acquire`"]
pub struct LocksRequest {
    core: Arc<Core>,
    resources: BTreeSet<String>,
    options: Options,
}

impl LocksRequest {
    pub(crate) fn new(client: &Client, resources: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let resources = resources.into_iter().map(Into::into).collect();
        Self { core: client.core().clone(), resources, options: Options::default() }
    }

    choices!();

    /// Waits for all of them. Dropped, or when one fails, those that were acquired are released, the last first.
    ///
    /// # Errors
    /// That of the first lock that wasn't acquired, or [`ErrorKind::Lost`](crate::ErrorKind::Lost) when one was lost
    /// while others were waited for. No error leaves a lock behind.
    pub async fn acquire(self) -> Result<HeldLocks, Error> {
        self.take(None).await
    }

    /// Takes all of them if each is free.
    ///
    /// # Errors
    /// As [`LocksRequest::acquire`].
    pub async fn try_acquire(self) -> Result<HeldLocks, Error> {
        self.take(Some(Wait::Try)).await
    }

    async fn take(self, wait: Option<Wait>) -> Result<HeldLocks, Error> {
        // A name at fault is found before anything is taken.
        let wanted = self.resources.iter().map(|resource| self.options.wanted(&self.core, resource));
        let wanted: Vec<Wanted> = wanted.collect::<Result<_, _>>()?;
        let began_at = self.core.clock.now();
        let mut held = HeldLocks { locks: Vec::with_capacity(wanted.len()) };
        for wanted in wanted {
            let is_first = held.locks.is_empty();
            let waited = if is_first { Duration::ZERO } else { self.core.clock.now().since(began_at) };
            let wait = wait.or_else(|| wanted.wait.after(waited)).ok_or_else(Error::timed_out);
            let wanted = match wait {
                Ok(wait) => Wanted { wait, ..wanted },
                Err(error) => return Err(held.fail(error).await),
            };
            let next = match select(pin!(acquire::acquire(&self.core, &wanted)), pin!(held.lost())).await {
                Either::Left((next, _)) => next,
                Either::Right((loss, _)) => Err(Error::lost(loss, Certainty::NotApplied)),
            };
            match next {
                Ok(lock) => held.locks.push(lock),
                Err(error) => return Err(held.fail(error).await),
            }
        }
        // Handed out together, they are held together.
        match held.locks.iter().find_map(HeldLock::loss) {
            Some(loss) => Err(held.fail(Error::lost(loss, Certainty::NotApplied)).await),
            None => Ok(held),
        }
    }
}

/// Several locks that are held, in the order of their names. Dropped, they are released in the background, the last
/// first.
#[must_use = "locks are released when they are dropped"]
#[derive(Debug)]
pub struct HeldLocks {
    locks: Vec<HeldLock>,
}

impl HeldLocks {
    /// Each of them, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &HeldLock> {
        self.locks.iter()
    }

    /// The one of that name.
    pub fn get(&self, resource: &str) -> Option<&HeldLock> {
        self.locks.iter().find(|lock| lock.resource().as_str() == resource)
    }

    /// Whether new work may start under all of them.
    ///
    /// # Errors
    /// The doubt about the first of which there is one.
    pub fn check(&self) -> Result<(), InDoubt> {
        self.locks.iter().try_for_each(HeldLock::check)
    }

    /// Returns when one of them is lost, and why.
    pub async fn lost(&self) -> Loss {
        if self.locks.is_empty() {
            return pending().await;
        }
        select_all(self.locks.iter().map(|lock| Box::pin(lock.lost()))).await.0
    }

    /// Releases all of them, the last first; for 5 s at most.
    ///
    /// # Errors
    /// The first that [`HeldLock::release`] gave; the others are released all the same.
    pub async fn release(mut self) -> Result<(), Error> {
        let releasing = std::mem::take(&mut self.locks).into_iter().rev().map(HeldLock::start_release);
        join_all(releasing).await.into_iter().collect()
    }

    /// Gives back what was taken before `error`, which the caller gets.
    async fn fail(self, error: Error) -> Error {
        if let Err(release) = self.release().await {
            tracing::debug!(%release, "after several locks couldn't be had");
        }
        error
    }
}

/// Each lock on its own from here on.
impl IntoIterator for HeldLocks {
    type Item = HeldLock;
    type IntoIter = std::vec::IntoIter<HeldLock>;

    fn into_iter(mut self) -> Self::IntoIter {
        std::mem::take(&mut self.locks).into_iter()
    }
}

impl Drop for HeldLocks {
    fn drop(&mut self) {
        while let Some(lock) = self.locks.pop() {
            drop(lock);
        }
    }
}
