//! What a call to the replica ends with.

use kunci_core::reply::Placed;
use kunci_types::{ClusterTime, Revision};
use std::fmt;

/// A place in the order that every history is checked against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The index of the log entry.
    pub index: u64,
    /// The place among the steps of that entry; a read comes after them all.
    pub place: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.place)
    }
}

/// An answer that the log decided, or a view that the log's order covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<T> {
    /// The answer.
    pub value: T,
    /// Where it took effect.
    pub position: Position,
    /// The cluster's revision after it took effect.
    pub revision: Revision,
    /// The cluster time at which it took effect.
    pub cluster_time: ClusterTime,
}

impl<T> Answered<T> {
    /// The answer that applying entry `index` gave at `now`.
    pub(crate) fn placed(index: u64, now: ClusterTime, placed: Placed<T>) -> Self {
        let Placed { value, place, revision } = placed;
        Self { value, position: Position { index, place }, revision, cluster_time: now }
    }

    /// The same answer with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answered<U> {
        let Self { value, position, revision, cluster_time } = self;
        Answered { value: change(value), position, revision, cluster_time }
    }
}

/// Why the log decided nothing that this call would know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// This node doesn't lead. Nothing was proposed.
    #[error("this node isn't the leader, or doesn't serve yet; nothing was proposed")]
    NoLeader,
    /// The leader reaches no quorum. Nothing was proposed.
    #[error("the leader reaches no quorum; nothing was proposed")]
    NoQuorum,
    /// Too much waits to be proposed. Nothing was proposed.
    #[error("too many requests wait to be proposed; nothing was proposed")]
    Overloaded,
    /// The disk is nearly full, on this node or on so many that the rest is no quorum. Nothing was proposed.
    #[error("the disk is nearly full: no new acquires until there is more room; nothing was proposed")]
    StorageLow,
    /// A member of the cluster doesn't know the command yet. Nothing was proposed.
    #[error("not every member knows this command yet: finish the upgrade first; nothing was proposed")]
    NotEnabled,
    /// It was proposed, and whether it takes effect isn't known.
    #[error("the outcome isn't known: ask again with the same request id")]
    OutcomeUnknown,
}
