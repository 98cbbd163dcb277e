//! What can be derived from leases and requests, kept so that no command has to search.
//!
//! Never in a snapshot: a restore derives all of it again.

use crate::lease::Holding;
use crate::request::{Request, RequestKey, RequestState, RequestText};
use crate::spread::SpreadMap;
use crate::table::State;
use alloc::collections::{BTreeMap, BTreeSet};
use kunci_types::{ClusterTime, FencingToken, LeaseId, Namespace, ResourceName, Revision};

/// All of the derived state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    /// Resources that somebody waits for; no empty queue is kept.
    pub(crate) queues: BTreeMap<ResourceName, Queue>,
    /// When each waiter must be looked at, in order of place.
    pub(crate) waits: BTreeMap<(ClusterTime, Revision), RequestKey>,
    /// When each lease or lock-delay ends.
    pub(crate) holdings: BTreeSet<(ClusterTime, ResourceName)>,
    /// Ended requests in order of their end. A queue in one piece would be copied as it grows, and stay large.
    pub(crate) ended: BTreeSet<(ClusterTime, RequestText)>,
    /// Requests by the lease they were granted, current or remembered.
    pub(crate) by_lease_id: SpreadMap<LeaseId, RequestText>,
    /// The same by token.
    pub(crate) by_token: BTreeMap<FencingToken, RequestText>,
    /// What each namespace uses; none with nothing is kept.
    pub(crate) namespaces: BTreeMap<Namespace, Usage>,
    /// What all use together.
    pub(crate) total: Usage,
}

/// The waiters of one resource by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) all: BTreeMap<Revision, RequestKey>,
    /// Those whose call is open: the only ones that are granted.
    pub(crate) attached: BTreeMap<Revision, RequestKey>,
}

/// How much of what the policy limits is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) leases: u64,
    pub(crate) waiters: u64,
}

/// What is counted.
#[derive(Clone, Copy)]
pub(crate) enum Counted {
    Lease,
    Waiter,
}

impl Usage {
    fn of(&mut self, what: Counted) -> &mut u64 {
        match what {
            Counted::Lease => &mut self.leases,
            Counted::Waiter => &mut self.waiters,
        }
    }
}

impl Index {
    pub(crate) fn queue_length(&self, resource: &ResourceName) -> u64 {
        self.queues.get(resource).map_or(0, |queue| queue.all.len() as u64)
    }

    /// The waiter that is served next.
    pub(crate) fn head(&self, resource: &ResourceName) -> Option<&RequestKey> {
        let attached = &self.queues.get(resource)?.attached;
        #[cfg(kunci_plants)]
        if crate::planted::is(crate::planted::Bug::LastFirst) {
            return attached.last_key_value().map(|(_, request)| request);
        }
        attached.first_key_value().map(|(_, request)| request)
    }

    /// What the namespace of `resource` uses.
    pub(crate) fn usage(&self, resource: &ResourceName) -> Usage {
        self.namespaces.get(resource.namespace_str()).copied().unwrap_or_default()
    }

    pub(crate) fn count_one(&mut self, resource: &ResourceName, what: Counted) {
        match self.namespaces.get_mut(resource.namespace_str()) {
            Some(usage) => *usage.of(what) += 1,
            None => *self.namespaces.entry(resource.namespace()).or_default().of(what) += 1,
        }
        *self.total.of(what) += 1;
    }

    pub(crate) fn count_one_less(&mut self, resource: &ResourceName, what: Counted) {
        let namespace = resource.namespace_str();
        if let Some(usage) = self.namespaces.get_mut(namespace) {
            *usage.of(what) -= 1;
            if *usage == Usage::default() {
                self.namespaces.remove(namespace);
            }
        }
        *self.total.of(what) -= 1;
    }

    pub(crate) fn enqueue(&mut self, resource: &ResourceName, place: Revision, request: RequestKey) {
        self.queues.entry(resource.clone()).or_default().all.insert(place, request);
        self.count_one(resource, Counted::Waiter);
    }

    pub(crate) fn attach(&mut self, resource: &ResourceName, place: Revision) {
        let Some(queue) = self.queues.get_mut(resource) else { return };
        if let Some(request) = queue.all.get(&place) {
            queue.attached.insert(place, request.clone());
        }
    }

    pub(crate) fn detach(&mut self, resource: &ResourceName, place: Revision) {
        if let Some(queue) = self.queues.get_mut(resource) {
            queue.attached.remove(&place);
        }
    }

    pub(crate) fn dequeue(&mut self, resource: &ResourceName, place: Revision) {
        let Some(queue) = self.queues.get_mut(resource) else { return };
        queue.attached.remove(&place);
        queue.all.remove(&place);
        if queue.all.is_empty() {
            self.queues.remove(resource);
        }
        self.count_one_less(resource, Counted::Waiter);
    }
}

impl Index {
    /// Derives everything anew from what a snapshot holds.
    pub(crate) fn derive(state: &State) -> Self {
        let mut index = Self::derive_live(state);
        for (key, request) in state.requests.iter() {
            index.derive_ended(key, request);
        }
        index
    }

    /// Derives it without what is over: only what is held, and who waits.
    pub(crate) fn derive_live(state: &State) -> Self {
        let mut index = Self::default();
        for (resource, holding) in &state.holdings {
            let until = match &**holding {
                Holding::Held(lease) => {
                    index.count_one(resource, Counted::Lease);
                    index.by_lease_id.insert(lease.terms.lease_id, lease.request.text().clone());
                    index.by_token.insert(lease.token, lease.request.text().clone());
                    lease.until
                }
                Holding::Closed { until } => *until,
            };
            index.holdings.insert((until, resource.clone()));
        }
        for (key, request) in state.requests.iter() {
            if let RequestState::Waiting(waiting) = &request.state {
                index.enqueue(&request.resource, waiting.place, key.clone());
                index.waits.insert((waiting.due(), waiting.place), key.clone());
                if waiting.attempt().is_some() {
                    index.attach(&request.resource, waiting.place);
                }
            }
        }
        index
    }

    fn derive_ended(&mut self, key: &RequestKey, request: &Request) {
        match &request.state {
            RequestState::Waiting(_) | RequestState::Granted { .. } => {}
            RequestState::Ended { at, token, lease_id, .. } => {
                self.ended.insert((*at, key.text().clone()));
                self.by_lease_id.insert(*lease_id, key.text().clone());
                self.by_token.insert(*token, key.text().clone());
            }
            RequestState::Closed { at, .. } => {
                self.ended.insert((*at, key.text().clone()));
            }
        }
    }
}
