//! What happened, for watchers. Never: a lease id or a request id.

use serde::Serialize;
use utoipa::ToSchema;

/// One ownership or queue event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventBody {
    /// Its number, 1 to 2^53 − 1: also the id of the Server-Sent Event.
    pub revision: u64,
    /// Cluster time at which it took effect, in ms since the cluster's first log entry.
    pub cluster_time_ms: u64,
    /// What happened: `queued`, `granted`, `released`, `expired`, `forced`, `abandoned`, `timed_out`, `cancelled`,
    /// `dropped`, `policy_changed` or `revision_raised`; also the name of the Server-Sent Event.
    pub kind: &'static str,
    /// The resource's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub resource: Option<String>,
    /// Whose request or lease it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub owner: Option<String>,
    /// The token of the lease that began or ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fencing_token: Option<u64>,
    /// How long the lease that began lasts, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ttl_ms: Option<u64>,
    /// Why the lease was ended by force.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
}

/// What happened to one resource, as far back as events are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryBody {
    /// The resource's name.
    pub resource: String,
    /// The events, oldest first.
    pub events: Vec<EventBody>,
    /// The cluster time of the answer, in ms since the cluster's first log entry: how long ago an event was is the
    /// difference.
    pub cluster_time_ms: u64,
    /// The revision up to which it goes.
    pub revision: u64,
}
