//! Asking for one lock.
//!
//! Owns: what can be chosen, and its defaults. Never: sends anything before it is asked to.

use crate::acquire::{self, Wait, Wanted};
use crate::client::{Client, Core};
use crate::error::Error;
use crate::held::HeldLock;
use crate::timing::Timing;
use kunci_types::{Owner, ResourceName};
use std::sync::Arc;
use std::time::Duration;

/// The TTL when none is chosen.
pub(crate) const TTL_DEFAULT: Duration = Duration::from_secs(30);

/// A lock to be acquired: choose, then [`acquire`](LockRequest::acquire), [`try_acquire`](LockRequest::try_acquire) or
/// [`with`](LockRequest::with).
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before `acquire`, `try_acquire` or `with`"]
pub struct LockRequest {
    core: Arc<Core>,
    resource: String,
    pub(crate) options: Options,
}

/// What can be chosen for a lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) owner: Option<String>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) renew_every: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) lock_delay: Duration,
}

impl Options {
    /// What they come to for a resource.
    pub(crate) fn wanted(&self, core: &Core, resource: &str) -> Result<Wanted, Error> {
        let invalid = |error: kunci_types::InvalidText| Error::invalid(error.to_string());
        let ttl = self.ttl.unwrap_or(TTL_DEFAULT);
        let timing = Timing::new(ttl, self.renew_every, core.answer_within);
        let wait = match self.wait {
            None => Wait::NoLimit,
            Some(wait) if wait < Duration::from_millis(1) => {
                return Err(Error::invalid(format!(
                    "a wait of {wait:?}: use try_acquire to not wait at all"
                )));
            }
            Some(wait) => Wait::UpTo(wait),
        };
        Ok(Wanted {
            resource: ResourceName::parse(resource).map_err(invalid)?,
            owner: match &self.owner {
                Some(owner) => Owner::parse(owner).map_err(invalid)?,
                None => core.owner.clone(),
            },
            timing: timing.map_err(|error| Error::invalid(error.to_string()))?,
            wait,
            lock_delay: self.lock_delay,
        })
    }
}

/// The setters that one lock and several share.
macro_rules! choices {
    () => {
        /// How long the lease lasts without renewal: the longest time that others wait for a holder that died. Within
        /// the cluster's policy, 1 s to 1 h by default. Without it 30 s.
        pub fn ttl(mut self, ttl: Duration) -> Self {
            self.options.ttl = Some(ttl);
            self
        }

        /// How long to wait, in all. Without it as long as it takes. At least 1 ms; not to wait is `try_acquire`.
        pub fn wait(mut self, wait: Duration) -> Self {
            self.options.wait = Some(wait);
            self
        }

        /// Who holds it, for people to read: 1 to 128 bytes. Without it the client's owner.
        pub fn owner(mut self, owner: impl Into<String>) -> Self {
            self.options.owner = Some(owner.into());
            self
        }

        /// How long the resource stays closed after this lease expires or is ended by force. Without it not at all.
        pub fn lock_delay(mut self, lock_delay: Duration) -> Self {
            self.options.lock_delay = lock_delay;
            self
        }

        /// How often the lease is renewed, up to a tenth earlier. At most half of the TTL; without it a third.
        pub fn renew_every(mut self, renew_every: Duration) -> Self {
            self.options.renew_every = Some(renew_every);
            self
        }
    };
}
pub(crate) use choices;

impl LockRequest {
    pub(crate) fn new(client: &Client, resource: &str) -> Self {
        Self { core: client.core().clone(), resource: resource.to_owned(), options: Options::default() }
    }

    choices!();

    /// Waits for the lock. Dropped, the request is cancelled on the server, and a grant that came first is released.
    ///
    /// # Errors
    /// When the wait is over, no server can decide, or what was asked for can't be. No error leaves a lock behind.
    pub async fn acquire(self) -> Result<HeldLock, Error> {
        let wanted = self.options.wanted(&self.core, &self.resource)?;
        acquire::acquire(&self.core, &wanted).await
    }

    /// Takes the lock if it is free and nobody waits for it.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/node.inc"));
    /// # fn main() { node::run(async |address| {
    /// # let client = kunci_client::Client::connect([address]).await?;
    /// use kunci_client::{Certainty, ErrorKind};
    ///
    /// let lock = client.lock("orders/42").try_acquire().await?;
    /// let refused = client.lock("orders/42").try_acquire().await.unwrap_err();
    /// assert!(matches!(refused.kind(), ErrorKind::Held { .. }));
    /// assert_eq!(refused.certainty(), Certainty::NotApplied);
    /// # drop(lock);
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Held`](crate::ErrorKind::Held) when it isn't free; otherwise as [`LockRequest::acquire`].
    pub async fn try_acquire(self) -> Result<HeldLock, Error> {
        let wanted = Wanted { wait: Wait::Try, ..self.options.wanted(&self.core, &self.resource)? };
        acquire::acquire(&self.core, &wanted).await
    }

    /// Runs `body` under the lock, then releases it and returns what `body` returned.
    ///
    /// The lock is renewed until `body` is done. `body` sees by [`HeldLock::lost`] or [`HeldLock::check`] when it has to
    /// stop earlier; nothing stops it by force. A release that fails is logged and hides nothing.
    ///
    /// # Errors
    /// When the lock wasn't acquired: `body` wasn't entered then.
    pub async fn with<T>(self, body: impl AsyncFnOnce(&HeldLock) -> T) -> Result<T, Error> {
        let lock = self.acquire().await?;
        let value = body(&lock).await;
        if let Err(error) = lock.release().await {
            tracing::debug!(%error, "after the work under a lock");
        }
        Ok(value)
    }
}
