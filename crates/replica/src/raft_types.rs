//! The consensus library's types, filled in with ours.
//!
//! Owns: the type configuration and its short names. Never: behaviour. The library is named in this crate
//! only, so everything the rest of the house sees goes through these names or through our own words.

use bytes::Bytes;
use kunci_core::reply::{Placed, Reply};
use kunci_types::ClusterTime;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One log entry as the state machine wrote it. To the log it is only bytes; the first byte is the format
/// version of the codec that owns them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryBytes(pub Bytes);

impl fmt::Display for EntryBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// What applying one entry gives back to the node that proposed it.
///
/// It never leaves the node. The library asks for serde all the same, so the content is skipped.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Applied {
    /// When the entry took effect.
    #[serde(skip)]
    pub now: ClusterTime,
    /// One for each command, in the entry's order.
    #[serde(skip)]
    pub replies: Vec<Placed<Reply>>,
}

/// How the members of a cluster are reached. Part of the replicated membership, so every node knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// `host:port` of the peer door, where the members talk to each other.
    pub peer: String,
    /// `host:port` of the HTTP door.
    pub http: String,
    /// `host:port` of the native door.
    pub native: String,
    /// Failure zone, when the operator named one.
    #[serde(default)]
    pub zone: Option<String>,
    /// Leadership moves to the healthy member with the largest.
    #[serde(default)]
    pub priority: u8,
    /// The member whose place it takes once it has caught up.
    #[serde(default)]
    pub replaces: Option<u64>,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.peer)
    }
}

openraft::declare_raft_types!(
    /// The type configuration: at most one leader per term, node ids and terms are `u64`.
    pub TypeConfig:
        D = EntryBytes,
        R = Applied,
        NodeId = u64,
        Node = Member,
        LeaderId = openraft::impls::leader_id_std::LeaderId<Self::Term, Self::NodeId>,
        AsyncRuntime = crate::runtime::Runtime,
);

/// Where an entry stands: the term of its leader, and its index.
pub type LogId = openraft::alias::LogIdOf<TypeConfig>;
/// One entry with its place.
pub type Entry = openraft::alias::EntryOf<TypeConfig>;
/// What an entry carries: nothing, our bytes, or a membership.
pub type Payload = openraft::alias::PayloadOf<TypeConfig>;
/// Term, candidate, and whether a quorum made it leader.
pub type Vote = openraft::alias::VoteOf<TypeConfig>;
/// A membership with the place where it was agreed.
pub type StoredMembership = openraft::alias::StoredMembershipOf<TypeConfig>;
/// The voters, the learners and how to reach them.
pub type Membership = openraft::Membership<u64, Member>;
/// What a snapshot covers: the last entry in it, and the membership at that place.
pub type SnapshotMeta = openraft::alias::SnapshotMetaOf<TypeConfig>;
/// A snapshot as the library passes it around: what it covers, and a handle to its file.
pub type Snapshot = openraft::alias::SnapshotOf<TypeConfig, crate::snapshot_store::SnapshotFile>;
