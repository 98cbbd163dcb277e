//! How nodes stand, as one of them knows.

use serde::Serialize;
use utoipa::ToSchema;

/// The cluster as this node knows it; no quorum was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterBody {
    /// The cluster's id: 32 hexadecimal digits. `null` for a node that belongs to no cluster yet.
    pub cluster_id: Option<String>,
    /// The id of the node that leads, as far as this one knows; `null` when it knows none.
    pub leader: Option<u64>,
    /// The members, this one included. A node of no cluster shows only itself, with id 0.
    pub nodes: Vec<NodeBody>,
    /// The id of the node that answers; `null` for a node of no cluster.
    pub node_id: Option<u64>,
    /// The id that the next new member gets: ids are given out once. `null` for a node of no cluster.
    pub next_node_id: Option<u64>,
    /// What an operator should look at, in words; empty when all is well.
    pub warnings: Vec<String>,
    /// The revision of this node's state.
    pub revision: u64,
    /// The cluster time of this node's state, in ms since the cluster's first log entry.
    pub cluster_time_ms: u64,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeBody {
    /// Its number, from 1; 0 for a node of no cluster.
    pub id: u64,
    /// `leader`, `follower`, `candidate`, `learner`, or `new`: a node of no cluster.
    pub role: &'static str,
    /// `host:port` at which the other members reach it.
    pub peer: String,
    /// `host:port` of its HTTP door.
    pub http: String,
    /// `host:port` of its native door.
    pub native: String,
    /// The failure zone that its operator named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub zone: Option<String>,
    /// Leadership moves to the healthy member with the largest: 0 to 255.
    pub priority: u8,
    /// Whether it can be counted on.
    pub healthy: bool,
    /// How its disk is: `ok`; `low`, with so little room that new acquires are refused while it leads; or `stuck`, when it
    /// doesn't answer. Left out while that isn't known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub disk: Option<&'static str>,
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

/// The node answers requests about locks, by itself or through the leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReadyBody {
    /// `true`.
    pub ready: bool,
    /// The revision of this node's state.
    pub revision: u64,
}
