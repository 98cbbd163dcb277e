//! How a node stands, as it knows by itself.

use crate::data_folder::ClusterId;
use crate::pulse::Pulse;
use kunci_types::{ClusterTime, Revision};
use std::time::Duration;

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

/// What a node can say of itself at a moment, in numbers. Nobody is asked, and nothing is counted for it.
#[derive(Clone, Copy, Debug)]
pub struct Readings {
    /// The term of the consensus.
    pub term: u64,
    /// Resources that are waited for.
    pub contended: u64,
    /// Renew commands that wait to be proposed.
    pub renewals_queued: usize,
    /// Other commands that wait to be proposed.
    pub others_queued: usize,
    /// Entries that were proposed and aren't decided.
    pub in_flight: usize,
    /// The last entry in this node's log.
    pub last_index: u64,
    /// The last entry that this node knows to be committed.
    pub committed_index: u64,
    /// Bytes of the log's files.
    pub log_bytes: u64,
    /// Bytes of the newest snapshot; 0 without one.
    pub snapshot_bytes: u64,
    /// The last entry in the newest snapshot; 0 without one.
    pub snapshot_index: u64,
    /// Free bytes on the disk, as of the last look.
    pub disk_free_bytes: u64,
    /// Whether a sync takes too long.
    pub disk_stuck: bool,
    /// Cluster time: at the leader now, elsewhere that of the last entry.
    pub cluster_time: ClusterTime,
    /// Time that passed while this node led and that cluster time didn't count, in µs.
    pub skipped_us: u64,
    /// How long this node has known of no leader; zero while it does.
    pub without_leader: Duration,
}

/// With less than this many free bytes, new acquires are refused.
pub const DISK_RESERVE_BYTES: u64 = crate::disk::RESERVE_BYTES;

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
    /// How its disk is; `None` while it wasn't heard of lately.
    pub disk: Option<DiskState>,
    /// The last entry that it is known to have.
    pub applied_index: u64,
}

/// Whether a member's disk can be counted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskState {
    /// It answers, and there is room.
    Ok,
    /// It has less room than the reserve: new acquires are refused while its node leads.
    Low,
    /// It hasn't answered for too long.
    Stuck,
}

impl DiskState {
    pub(crate) fn of(pulse: &Pulse) -> Self {
        match pulse {
            Pulse { disk_stuck: true, .. } => Self::Stuck,
            Pulse { storage_low: true, .. } => Self::Low,
            Pulse { .. } => Self::Ok,
        }
    }
}
