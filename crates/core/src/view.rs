//! What readers see of the locks. Never: a lease id or a request id.

use crate::lease::Holding;
use crate::table::LockTable;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};
use core::iter::Peekable;
use core::ops::Deref;
use kunci_types::{ClusterTime, FencingToken, Metadata, Owner, Policy, ResourceName, Revision};

/// How a resource stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Somebody holds it.
    Held(HeldView),
    /// A lock-delay keeps it closed.
    Closed {
        /// For how long, in ms.
        remaining_ms: u64,
        /// How many wait.
        queue_length: u64,
    },
    /// Nobody holds it.
    Free {
        /// How many wait: detached ones only.
        queue_length: u64,
    },
}

/// A lease as others may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldView {
    /// Who holds it.
    pub owner: Owner,
    /// The lease's token.
    pub token: FencingToken,
    /// How long the lease lasts, in ms.
    pub remaining_ms: u64,
    /// How long it has been held, in ms.
    pub held_ms: u64,
    /// The lease's TTL, in ms.
    pub ttl_ms: u64,
    /// What the holder said about it.
    pub metadata: Option<Metadata>,
    /// How many wait.
    pub queue_length: u64,
}

/// A waiter as others may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaiterView {
    /// Who waits.
    pub owner: Owner,
    /// The place in the queue, from 1.
    pub position: u64,
    /// How long it has waited, in ms.
    pub waited_ms: u64,
    /// How long it would go on, in ms.
    pub wait_remaining_ms: u64,
    /// Whether its call is open; a waiter without one is passed over.
    pub attached: bool,
}

/// A resource in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The resource.
    pub resource: ResourceName,
    /// How it stands.
    pub status: Status,
}

/// The locks as they stand between two entries: time has gone on since the last one, and nothing else.
#[derive(Clone, Copy)]
pub struct View<'a> {
    table: &'a LockTable,
    /// Since the last entry, in ms.
    later_ms: u64,
}

impl Deref for View<'_> {
    type Target = LockTable;

    fn deref(&self) -> &LockTable {
        self.table
    }
}

impl View<'_> {
    /// See [`LockTable::status`]. A lease that is due and not yet ended remains for 0 ms.
    pub fn status(&self, resource: &ResourceName) -> Status {
        self.table.status(resource).later(self.later_ms)
    }

    /// See [`LockTable::queue`].
    pub fn queue(&self, resource: &ResourceName) -> Vec<WaiterView> {
        let mut waiters = self.table.queue(resource);
        for waiter in &mut waiters {
            waiter.waited_ms = waiter.waited_ms.saturating_add(self.later_ms);
            waiter.wait_remaining_ms = waiter.wait_remaining_ms.saturating_sub(self.later_ms);
        }
        waiters
    }

    /// See [`LockTable::list`].
    pub fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Listed> {
        self.all_later(self.table.list(prefix, after, limit))
    }

    /// See [`LockTable::hot`].
    pub fn hot(&self, limit: usize) -> Vec<Listed> {
        self.all_later(self.table.hot(limit))
    }

    /// See [`LockTable::expiring`].
    pub fn expiring(&self, limit: usize) -> Vec<Listed> {
        self.all_later(self.table.expiring(limit))
    }

    /// The cluster time at which this is seen.
    pub fn now(&self) -> ClusterTime {
        self.table.state.head.now.plus_ms(self.later_ms)
    }

    fn all_later(&self, listed: Vec<Listed>) -> Vec<Listed> {
        let later = |listed: Listed| Listed { status: listed.status.later(self.later_ms), ..listed };
        listed.into_iter().map(later).collect()
    }
}

impl Status {
    fn later(mut self, ms: u64) -> Self {
        match &mut self {
            Self::Held(held) => {
                held.remaining_ms = held.remaining_ms.saturating_sub(ms);
                held.held_ms = held.held_ms.saturating_add(ms);
            }
            Self::Closed { remaining_ms, .. } => *remaining_ms = remaining_ms.saturating_sub(ms),
            Self::Free { .. } => {}
        }
        self
    }
}

impl LockTable {
    /// The locks as they stand at `now`, if no entry comes before it.
    pub fn seen_at(&self, now: ClusterTime) -> View<'_> {
        View { table: self, later_ms: now.ms_since(self.state.head.now) }
    }

    /// How `resource` stands; a free one is an answer too.
    pub fn status(&self, resource: &ResourceName) -> Status {
        let holding = self.state.holdings.get(resource).map(|holding| &**holding);
        self.status_of(holding, self.index.queue_length(resource))
    }

    fn status_of(&self, holding: Option<&Holding>, queue_length: u64) -> Status {
        let now = self.state.head.now;
        match holding {
            None => Status::Free { queue_length },
            Some(Holding::Closed { until }) => {
                Status::Closed { remaining_ms: until.ms_since(now), queue_length }
            }
            Some(Holding::Held(lease)) => Status::Held(HeldView {
                owner: lease.terms.owner.clone(),
                token: lease.token,
                remaining_ms: lease.remaining_ms(now),
                held_ms: now.ms_since(lease.granted_at),
                ttl_ms: lease.terms.ttl.as_ms(),
                metadata: lease.terms.metadata.clone(),
                queue_length,
            }),
        }
    }

    /// Who waits for `resource`, in order of place.
    pub fn queue(&self, resource: &ResourceName) -> Vec<WaiterView> {
        let now = self.state.head.now;
        let requests = self.index.queues.get(resource).into_iter().flat_map(|queue| queue.all.values());
        let waiters = requests.filter_map(|request| self.waiting(request));
        (1..)
            .zip(waiters)
            .map(|(position, waiting)| WaiterView {
                owner: waiting.terms.owner.clone(),
                position,
                waited_ms: now.ms_since(waiting.since),
                wait_remaining_ms: waiting.until.ms_since(now),
                attached: waiting.attempt().is_some(),
            })
            .collect()
    }

    /// The resources that are held, closed or waited for, whose names begin with `prefix` and come after
    /// `after`, in order of name; at most `limit`.
    pub fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Listed> {
        // A bound by text: the next name after `after` may not exist, so it is compared, not looked up.
        let from = ResourceName::from_log(after.filter(|after| *after >= prefix).unwrap_or(prefix));
        let held = self.state.holdings.range(from.clone()..).map(|(name, holding)| (name, &**holding));
        let queued = self.index.queues.range(from..).map(|(name, queue)| (name, queue.all.len() as u64));
        merge(held.peekable(), queued.peekable())
            .skip_while(|(name, ..)| after == Some(name.as_str()))
            .take_while(|(name, ..)| name.as_str().starts_with(prefix))
            .take(limit)
            .map(|(name, holding, queue_length)| Listed {
                resource: name.clone(),
                status: self.status_of(holding, queue_length.unwrap_or(0)),
            })
            .collect()
    }

    /// The resources with the longest queues, longest first; at most `limit`.
    pub fn hot(&self, limit: usize) -> Vec<Listed> {
        // The locks stand still meanwhile, so no more is kept and compared than is asked for. The coldest is on top.
        let mut hottest: BinaryHeap<(Reverse<usize>, &ResourceName)> = BinaryHeap::new();
        for (name, queue) in &self.index.queues {
            let next = (Reverse(queue.all.len()), name);
            if hottest.len() < limit {
                hottest.push(next);
            } else if let Some(mut coldest) = hottest.peek_mut()
                && next < *coldest
            {
                *coldest = next;
            }
        }
        hottest
            .into_sorted_vec()
            .into_iter()
            .map(|(_, name)| Listed { resource: name.clone(), status: self.status(name) })
            .collect()
    }

    /// The resources whose leases or lock-delays end next, the next one first; at most `limit`.
    pub fn expiring(&self, limit: usize) -> Vec<Listed> {
        let next = self.index.holdings.iter().take(limit);
        next.map(|(_, name)| Listed { resource: name.clone(), status: self.status(name) }).collect()
    }

    /// The limits in force.
    pub fn policy(&self) -> &Policy {
        &self.state.head.policy
    }

    /// The revision at which the limits in force were set; 0 for the defaults.
    pub fn policy_revision(&self) -> Revision {
        self.state.head.policy_revision
    }

    /// How many ownership and queue events there have been.
    pub fn revision(&self) -> Revision {
        self.state.head.revision
    }

    /// How many leases are current.
    pub fn held_count(&self) -> u64 {
        self.index.total.leases
    }

    /// How many requests wait.
    pub fn waiter_count(&self) -> u64 {
        self.index.total.waiters
    }

    /// How many resources are waited for.
    pub fn contended_count(&self) -> u64 {
        self.index.queues.len() as u64
    }

    /// How many requests are remembered, ended or not.
    pub fn request_count(&self) -> u64 {
        self.state.requests.len() as u64
    }
}

/// Merges two ordered runs by name; a name that is in both comes once, with what both say of it.
fn merge<'a, A, B>(
    mut left: Peekable<impl Iterator<Item = (&'a ResourceName, A)>>,
    mut right: Peekable<impl Iterator<Item = (&'a ResourceName, B)>>,
) -> impl Iterator<Item = (&'a ResourceName, Option<A>, Option<B>)> {
    core::iter::from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let of_left = if order.is_le() { left.next() } else { None };
        let of_right = if order.is_ge() { right.next() } else { None };
        let name = of_left.as_ref().map(|(name, _)| *name).or(of_right.as_ref().map(|(name, _)| *name))?;
        Some((name, of_left.map(|(_, a)| a), of_right.map(|(_, b)| b)))
    })
}
