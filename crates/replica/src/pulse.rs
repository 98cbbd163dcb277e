//! How each member is, told once a second to the leader, and by the leader to each.
//!
//! Owns: what is told. Never: a lock, or anything that a decision about a lock rests on.

use crate::raft_types::Member;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a member is, as it says itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pulse {
    /// How it is reached now; it may have moved since it joined.
    pub(crate) member: Member,
    /// The last entry that it applied.
    pub(crate) applied_index: u64,
    /// Whether its disk is nearly full.
    pub(crate) storage_low: bool,
    /// Whether its disk hasn't answered for too long.
    pub(crate) disk_stuck: bool,
    /// The largest feature level that its release knows.
    pub(crate) feature_level: u32,
}

/// What a member answers to a pulse.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Census {
    /// Who leads, as far as it knows.
    pub(crate) leader: Option<u64>,
    /// From the leader: how each member is. A member that wasn't heard from lately is missing.
    pub(crate) members: BTreeMap<u64, Pulse>,
}
