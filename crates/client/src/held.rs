//! A lock that is held, as its holder sees it.
//!
//! Owns: what a holder can ask and wait for, and giving back on every way out. Never: renews; the keeper does.

use crate::client::Core;
use crate::error::{Certainty, Error};
use crate::keeper::{Keep, Lease, Order, Orders};
use crate::renewer::{Granted, Key};
use crate::shared::Shared;
use crate::state::{Facts, Loss, State};
use kunci_types::{FencingToken, LeaseId, ResourceName};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// A lock that is held, and renewed in the background until it is released or lost.
///
/// Holding this value isn't proof of holding the lock: the process may have been paused, or cut off from the cluster
/// for longer than a lease. Work that must not overlap asks [`HeldLock::check`] before each step, stops when
/// [`HeldLock::lost`] returns, and sends [`HeldLock::token`] along, so that what it protects can refuse a holder of the
/// past.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/node.inc"));
/// # async fn step(_token: u64) {}
/// # fn main() { node::run(async |address| {
/// # let client = kunci_client::Client::connect([address]).await?;
/// let lock = client.lock("orders/42").acquire().await?;
/// for _ in 0..3 {
///     lock.check()?; // may new work start?
///     step(lock.token().get()).await;
/// }
/// lock.release().await?;
/// # Ok(()) }) }
/// ```
///
/// Dropped, the lock is released in the background: inside a runtime and outside, while unwinding, and during shutdown,
/// when nothing can be sent any more and the lease runs out instead. Forgotten (`std::mem::forget`), it is kept for as
/// long as its client's runtime lives, at most until the policy's limit on holding.
#[must_use = "a lock is released when it is dropped"]
pub struct HeldLock {
    key: Key,
    lease: Lease,
    token: FencingToken,
    shared: Arc<Shared>,
    orders: Orders,
    is_given_back: bool,
}

/// Why new work shouldn't start under a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InDoubt {
    /// Renewals don't get through.
    #[error("renewals of the lock don't get through; it lasts for another {remaining:?}")]
    Uncertain {
        /// How long the lock may still be relied on.
        remaining: Duration,
    },
    /// The lock isn't held any more.
    #[error(transparent)]
    Lost(#[from] Loss),
}

impl HeldLock {
    /// Begins to keep a lease.
    pub(crate) fn keep(
        core: &Core,
        lease: Lease,
        token: FencingToken,
        granted: Granted,
    ) -> Result<Self, Error> {
        let key = core.next_key();
        let shared = Arc::new(Shared::new(core.clock.clone(), granted.facts()));
        let keep = Keep { key, lease: lease.clone(), granted, shared: shared.clone() };
        let orders = core.orders.clone();
        orders.send(Order::Keep(Box::new(keep))).map_err(|_| Error::closed(Certainty::Unknown))?;
        Ok(Self { key, lease, token, shared, orders, is_given_back: false })
    }

    /// What is locked.
    pub fn resource(&self) -> &ResourceName {
        &self.lease.resource
    }

    /// The lease id: who knows it can renew and release the lock, so it is shown to nobody else. A job that is a program
    /// of its own gets it from the process that holds the lock.
    pub fn lease_id(&self) -> LeaseId {
        self.lease.lease_id
    }

    /// The fencing token of this grant: larger than that of every grant before it. Whatever the lock protects compares
    /// it, and refuses a smaller one than it has seen.
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// How sure it is that the lock is held, now.
    pub fn state(&self) -> State {
        self.shared.state()
    }

    /// How long the lock may be relied on from now, if no renewal gets through; nothing once it is lost.
    ///
    /// # Guarantee
    /// Never overstates: it counts from before the request was sent, on a clock that goes on during suspend, less 1 % of
    /// the TTL and 20 ms.
    pub fn remaining(&self) -> Duration {
        self.shared.remaining()
    }

    /// Whether new work may start.
    ///
    /// # Errors
    /// When renewals don't get through, or the lock is lost.
    pub fn check(&self) -> Result<(), InDoubt> {
        match (self.shared.state(), self.shared.loss()) {
            (State::Held, None) => Ok(()),
            (_, Some(loss)) => Err(InDoubt::Lost(loss)),
            (_, None) => Err(InDoubt::Uncertain { remaining: self.shared.remaining() }),
        }
    }

    /// Returns when the lock is lost, and why; never while it is held. It needs no answer of a server: the lock's own
    /// deadline is enough.
    pub async fn lost(&self) -> Loss {
        let mut changes = self.shared.changes();
        let lost = changes.wait_for(|facts| facts.lost.is_some()).await.ok().and_then(|facts| facts.lost);
        lost.unwrap_or(Loss::ClientGone)
    }

    /// A token that is cancelled as soon as the lock isn't held any more: lost, released, or dropped.
    ///
    /// Cancelling it does nothing to the lock.
    pub fn lost_token(&self) -> CancellationToken {
        self.shared.over().child_token()
    }

    /// Whether the policy's limit on holding a lock is near: no renewal extends it any more, and it will be lost after
    /// [`HeldLock::remaining`].
    pub fn is_final(&self) -> bool {
        self.shared.is_final()
    }

    /// Each change of state, from now on.
    pub fn states(&self) -> States {
        States { shared: self.shared.clone(), changes: self.shared.changes(), last: None }
    }

    /// Releases the lock and waits until a server has confirmed it: for 5 s at most, trying again every 200 ms. From
    /// here on it isn't renewed. Dropped, it goes on in the background.
    ///
    /// # Errors
    /// When the lock had been lost, which is known at once, or no server confirmed; then the lease runs out by itself.
    pub async fn release(self) -> Result<(), Error> {
        self.start_release().await
    }

    /// Has it released, and returns what waits for the confirmation.
    pub(crate) fn start_release(mut self) -> impl Future<Output = Result<(), Error>> + use<> {
        self.is_given_back = true;
        let loss = self.shared.loss();
        let (reply, released) = oneshot::channel();
        self.give_back(loss.is_none().then_some(reply));
        async move {
            match loss {
                Some(loss @ Loss::Ended(_)) => Err(Error::lost(loss, Certainty::NotApplied)),
                Some(loss) => Err(Error::lost(loss, Certainty::Unknown)),
                None => released.await.unwrap_or_else(|_| Err(Error::closed(Certainty::Unknown))),
            }
        }
    }

    pub(crate) fn loss(&self) -> Option<Loss> {
        self.shared.loss()
    }

    /// Neither blocks nor needs a runtime, and never panics: it may run anywhere, at any time.
    fn give_back(&self, reply: Option<oneshot::Sender<Result<(), Error>>>) {
        self.shared.end();
        let order = match self.shared.loss() {
            Some(Loss::Ended(_)) => Order::Forget { key: self.key },
            // After the own deadline the server may still count the lease as current: others needn't wait for it.
            _ => Order::Release { key: self.key, lease: self.lease.clone(), reply },
        };
        // Without a keeper the lease runs out.
        let _ = self.orders.send(order);
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if !self.is_given_back {
            self.give_back(None);
        }
    }
}

impl fmt::Debug for HeldLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("HeldLock");
        shown.field("resource", &self.lease.resource).field("token", &self.token);
        shown.field("state", &self.state()).field("remaining", &self.remaining()).finish()
    }
}

/// The changes of a lock's state.
#[derive(Debug)]
pub struct States {
    shared: Arc<Shared>,
    changes: watch::Receiver<Facts>,
    last: Option<State>,
}

impl States {
    /// The state now, the first time; then each that differs from the one before. `None` after [`State::Lost`], and once
    /// the lock was released.
    pub async fn next(&mut self) -> Option<State> {
        loop {
            let state = self.shared.state();
            if self.last != Some(state) {
                self.last = Some(state);
                return Some(state);
            }
            if state == State::Lost {
                return None;
            }
            tokio::select! {
                biased;
                changed = self.changes.changed() => if changed.is_err() { return None },
                () = self.shared.over().cancelled() => return None,
            }
        }
    }
}
