//! What readers see of the locks. Never: a lease id or a request id.

use serde::Serialize;
use utoipa::ToSchema;

/// How one resource stands; a free one is an answer too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedBody {
    /// The resource's name.
    pub resource: String,
    /// Whether somebody holds it.
    pub held: bool,
    /// The owner of the current lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub holder: Option<String>,
    /// The token of the current lease: 1 to 2^53 − 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fencing_token: Option<u64>,
    /// How long the current lease lasts, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub remaining_ms: Option<u64>,
    /// When the current lease ends by this node's wall clock (RFC 3339, UTC): for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub expires_at: Option<String>,
    /// How long it has been held, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub held_ms: Option<u64>,
    /// Since when it has been held by this node's wall clock (RFC 3339, UTC): for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub held_since: Option<String>,
    /// The current lease's TTL, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ttl_ms: Option<u64>,
    /// What the holder said about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub metadata: Option<String>,
    /// How long a lock-delay still keeps a resource closed that nobody holds, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lock_delay_ms: Option<u64>,
    /// How many wait for it.
    pub queue_length: u64,
}

/// The status of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct StatusBody {
    /// How it stands.
    #[serde(flatten)]
    pub status: ListedBody,
    /// The revision that the answer shows.
    pub revision: u64,
}

/// One page of resources, in order of name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ListBody {
    /// Those that are held, closed or waited for.
    pub locks: Vec<ListedBody>,
    /// What to pass as `after` for the next page; left out on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next: Option<String>,
    /// The revision that the answer shows; each page shows its own.
    pub revision: u64,
}

/// Who waits for a resource, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct QueueBody {
    /// The resource's name.
    pub resource: String,
    /// The waiters, first one first.
    pub waiters: Vec<WaiterBody>,
    /// The revision that the answer shows.
    pub revision: u64,
}

/// One waiter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaiterBody {
    /// Who waits.
    pub owner: String,
    /// The place in the queue, from 1.
    pub position: u64,
    /// How long it has waited, in ms.
    pub waited_ms: u64,
    /// How long it would go on, in ms.
    pub wait_remaining_ms: u64,
    /// Whether a call of its request is open; a waiter without one is passed over and dropped after the waiter
    /// grace.
    pub attached: bool,
}
