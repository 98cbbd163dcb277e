//! The one task that keeps all locks of a client: it renews, releases, and takes back what nobody waits for any more.
//!
//! Owns: everything that goes on when no caller waits. Never: decides when; the renewer does.

use crate::clock::Clock;
use crate::error::Error;
use crate::links::Links;
use crate::release;
use crate::renew;
use crate::renewer::{Granted, Key, Renewal, Renewer};
use crate::shared::Shared;
use crate::state::Facts;
use crate::timing::Timing;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use kunci_types::{LeaseId, Owner, RequestId, ResourceName};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// What the keeper is asked to do. Every sender may be on any thread, or in a destructor.
#[derive(Debug)]
pub(crate) enum Order {
    /// Keep a lease that was granted.
    Keep(Box<Keep>),
    /// Stop to renew a lease and release it.
    Release { key: Key, lease: Lease, reply: Option<oneshot::Sender<Result<(), Error>>> },
    /// Stop to renew a lease that the server has ended.
    Forget { key: Key },
    /// Cancel a request that nobody waits for any more, and give back what it may have been granted.
    TakeBack(Request),
    /// Say when all that goes on in the background is done.
    Settle { reply: oneshot::Sender<()> },
}

/// A lease by its names.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) resource: ResourceName,
    pub(crate) lease_id: LeaseId,
}

/// A request by its names.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) resource: ResourceName,
    pub(crate) owner: Owner,
    pub(crate) request_id: RequestId,
}

#[derive(Debug)]
pub(crate) struct Keep {
    pub(crate) key: Key,
    pub(crate) lease: Lease,
    pub(crate) granted: Granted,
    pub(crate) shared: Arc<Shared>,
}

/// How to reach the keeper. Sending works on every thread, outside a runtime and while unwinding.
pub(crate) type Orders = mpsc::UnboundedSender<Order>;

/// Starts a keeper, which ends when every handle is gone and its work is done. Called inside a runtime.
pub(crate) fn start(links: Links, clock: Arc<dyn Clock>) -> Orders {
    // Not bounded by itself: there is one order for each lease or request that a caller has had.
    let (orders, to_do) = mpsc::unbounded_channel();
    kunci_process::spawn(Keeper::new(links, clock).run(to_do));
    orders
}

struct Kept {
    lease: Lease,
    timing: Timing,
    shared: Arc<Shared>,
    /// Ends a renewal that is on its way.
    forgotten: CancellationToken,
}

struct Keeper {
    links: Links,
    clock: Arc<dyn Clock>,
    renewer: Renewer,
    kept: BTreeMap<Key, Kept>,
    /// On their way. One of a lease that was released meanwhile comes to nothing.
    renewals: FuturesUnordered<BoxFuture<'static, Option<(Key, Renewal)>>>,
    /// Releases and cancellations.
    others: FuturesUnordered<BoxFuture<'static, ()>>,
    settling: Vec<oneshot::Sender<()>>,
}

impl Keeper {
    fn new(links: Links, clock: Arc<dyn Clock>) -> Self {
        Self {
            links,
            clock,
            renewer: Renewer::default(),
            kept: BTreeMap::new(),
            renewals: FuturesUnordered::new(),
            others: FuturesUnordered::new(),
            settling: Vec::new(),
        }
    }

    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let mut alarm = self.clock.alarm();
        let mut is_wanted = true;
        while is_wanted || !self.others.is_empty() {
            let wake_at = self.renewer.wake_at();
            tokio::select! {
                biased;
                () = alarm.ring_at(wake_at.unwrap_or_default()), if wake_at.is_some() => {}
                Some(renewal) = self.renewals.next() => self.told(renewal),
                Some(()) = self.others.next() => {}
                // Last, so that no flood of them keeps a lock from being renewed.
                order = orders.recv(), if is_wanted => match order {
                    Some(order) => self.handle(order),
                    None => is_wanted = false,
                },
            }
            self.look();
        }
    }

    fn handle(&mut self, order: Order) {
        match order {
            Order::Keep(keep) => self.keep(*keep),
            Order::Forget { key } => self.forget(key),
            Order::Release { key, lease, reply } => {
                self.forget(key);
                let links = self.links.clone();
                self.others.push(Box::pin(async move {
                    let released = release::release(&links, &lease).await;
                    if let Err(error) = &released {
                        tracing::warn!(resource = %lease.resource, %error, "a lock wasn't released; its lease runs out");
                    }
                    if let Some(reply) = reply {
                        let _ = reply.send(released);
                    }
                }));
            }
            Order::TakeBack(request) => {
                let links = self.links.clone();
                self.others.push(Box::pin(async move {
                    release::take_back(&links, &request).await;
                }));
            }
            Order::Settle { reply } => self.settling.push(reply),
        }
    }

    fn keep(&mut self, keep: Keep) {
        let Keep { key, lease, granted, shared } = keep;
        shared.publish(self.renewer.keep(key, &granted));
        let kept = Kept { lease, timing: granted.timing, shared, forgotten: CancellationToken::new() };
        self.kept.insert(key, kept);
    }

    fn forget(&mut self, key: Key) {
        self.renewer.forget(key);
        if let Some(kept) = self.kept.remove(&key) {
            kept.forgotten.cancel();
        }
    }

    /// Sends what is due, and says what has changed.
    fn look(&mut self) {
        let due = self.renewer.due(self.clock.now());
        for (key, facts) in due.changed {
            self.publish(key, facts);
        }
        for key in due.renew {
            let Some(kept) = self.kept.get(&key) else { continue };
            let links = self.links.clone();
            let (lease, within) = (kept.lease.clone(), kept.timing.answer_within);
            let forgotten = kept.forgotten.clone();
            self.renewals.push(Box::pin(async move {
                let renewal = renew::try_once(&links, &lease, within);
                Some((key, forgotten.run_until_cancelled(renewal).await?))
            }));
        }
        if self.others.is_empty() {
            for waits in self.settling.drain(..) {
                let _ = waits.send(());
            }
        }
    }

    fn told(&mut self, renewal: Option<(Key, Renewal)>) {
        let Some((key, renewal)) = renewal else { return };
        if let Some(facts) = self.renewer.told(key, renewal, self.clock.now()) {
            self.publish(key, facts);
        }
    }

    fn publish(&mut self, key: Key, facts: Facts) {
        let Some(kept) = self.kept.get(&key) else { return };
        kept.shared.publish(facts);
        if let Some(loss) = facts.lost {
            tracing::warn!(resource = %kept.lease.resource, %loss, "a lock was lost");
            if let Some(kept) = self.kept.remove(&key) {
                kept.forgotten.cancel();
            }
        } else if facts.is_final {
            tracing::warn!(resource = %kept.lease.resource, "a lock is near the limit on holding it");
        }
    }
}

/// Nobody renews any more: whoever waits for a loss, on another runtime, learns it now and not never.
impl Drop for Keeper {
    fn drop(&mut self) {
        for (key, facts) in self.renewer.give_up() {
            self.publish(key, facts);
        }
    }
}
