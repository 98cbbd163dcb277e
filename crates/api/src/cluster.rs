//! How nodes stand, as one of them knows.

use serde::Serialize;
use utoipa::ToSchema;

/// The cluster as this node knows it; no quorum was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterBody {
    /// The cluster's id: 32 hexadecimal digits.
    pub cluster_id: String,
    /// The node that answers.
    pub node: u64,
    /// The node that leads, as far as this one knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub leader: Option<u64>,
    /// The members, this one included.
    pub nodes: Vec<NodeBody>,
    /// The revision of this node's state.
    pub revision: u64,
    /// The cluster time of this node's state, in ms since the cluster's first log entry.
    pub cluster_time_ms: u64,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeBody {
    /// Its number.
    pub id: u64,
    /// `leader`, `follower`, `candidate` or `learner`.
    pub role: &'static str,
    /// `host:port` of its HTTP door.
    pub http: String,
    /// `host:port` of its native door.
    pub native: String,
    /// The failure zone that its operator named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub zone: Option<String>,
    /// Whether it can be counted on.
    pub healthy: bool,
    /// The last log entry that it is known to have applied.
    pub applied_index: u64,
}

/// The process runs and answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct LiveBody {
    /// `true`.
    pub live: bool,
    /// The revision of this node's state.
    pub revision: u64,
}

/// The node answers requests about locks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReadyBody {
    /// `true`.
    pub ready: bool,
    /// The revision of this node's state.
    pub revision: u64,
}
