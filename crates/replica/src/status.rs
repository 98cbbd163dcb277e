//! How a node stands, as it knows by itself.

use crate::data_folder::ClusterId;
use kunci_types::{ClusterTime, Revision};

/// What a node does in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Orders the commands.
    Leader,
    /// Votes and follows.
    Follower,
    /// Stands for election.
    Candidate,
    /// Follows without a vote.
    Learner,
}

/// How a node stands.
#[derive(Clone, Debug)]
pub struct NodeStatus {
    /// This node.
    pub node_id: u64,
    /// Its cluster.
    pub cluster_id: ClusterId,
    /// What it does.
    pub role: Role,
    /// Who leads, as far as it knows.
    pub leader: Option<u64>,
    /// Whether it answers requests.
    pub serving: bool,
    /// The last entry that it applied.
    pub applied_index: u64,
    /// The revision of its state.
    pub revision: Revision,
    /// The cluster time of its state.
    pub cluster_time: ClusterTime,
    /// The largest node id that was ever given out; the next node gets the one after it.
    pub ids_used: u64,
    /// Held leases, waiters and remembered requests of its state.
    pub counts: Counts,
    /// The members, itself included.
    pub members: Vec<MemberStatus>,
}

/// How much a state holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Leases that are current.
    pub held: u64,
    /// Requests that wait.
    pub waiters: u64,
    /// Requests that are remembered, ended or not.
    pub requests: u64,
}

/// How a member stands, as this node knows.
#[derive(Clone, Debug)]
pub struct MemberStatus {
    /// The member.
    pub id: u64,
    /// What it does.
    pub role: Role,
    /// `host:port` of its peer door.
    pub peer: String,
    /// `host:port` of its HTTP door.
    pub http: String,
    /// `host:port` of its native door.
    pub native: String,
    /// The failure zone that its operator named.
    pub zone: Option<String>,
    /// Leadership moves to the healthy member with the largest.
    pub priority: u8,
    /// Whether it was heard of lately, and its disk answers.
    pub healthy: bool,
    /// The last entry that it is known to have.
    pub applied_index: u64,
}
