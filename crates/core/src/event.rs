//! What happened to owners and queues, for watchers and the audit log.
//!
//! Never: a lease id or a request id, but for the marks, which never leave the node.

use crate::request::RequestKey;
use kunci_types::{ClientAddress, ClusterTime, FencingToken, LeaseId, Owner, Reason, ResourceName, Revision};

/// One ownership or queue event; each has a revision of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number.
    pub revision: Revision,
    /// When it took effect.
    pub at: ClusterTime,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Something happened to one resource.
    Resource {
        /// The resource.
        resource: ResourceName,
        /// Whose request or lease it is about.
        owner: Owner,
        /// What happened to it.
        change: Change,
    },
    /// The limits changed.
    PolicyChanged,
    /// Revisions were raised; this event has the floor's number.
    RevisionRaised,
}

/// What happened to one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A request joined the queue.
    Queued,
    /// A lease began; its token is the event's revision.
    Granted {
        /// How long the lease lasts, in ms.
        ttl_ms: u64,
    },
    /// The holder ended the lease.
    Released {
        /// The lease's token.
        token: FencingToken,
    },
    /// Time ended the lease.
    Expired {
        /// The lease's token.
        token: FencingToken,
    },
    /// An operator ended the lease.
    Forced {
        /// The lease's token.
        token: FencingToken,
        /// Why.
        reason: Reason,
    },
    /// Nobody was told of the lease, so the leader ended it.
    Abandoned {
        /// The lease's token.
        token: FencingToken,
    },
    /// A wait was over.
    TimedOut,
    /// A waiter was cancelled.
    Cancelled,
    /// A waiter's client stayed away for longer than the waiter grace.
    Dropped,
}

/// What the audit log needs to know of an event besides. It stays in the node: the lease id is a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The event, by its place among those of the entry.
    pub event: usize,
    /// The step of the entry that brought it about.
    pub place: u32,
    /// The request that the event is about.
    pub request: RequestKey,
    /// The lease that began or ended.
    pub lease_id: Option<LeaseId>,
    /// Where the request's newest call came from.
    pub address: Option<ClientAddress>,
}
