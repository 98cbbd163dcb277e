//! Who looks on while the log is applied: the audit log of the node.
//!
//! Owns: what an observer is shown, in the log's order. Never: waits for one.

use crate::answered::Refusal;
use crate::data_folder::ClusterId;
use crate::raft_types::StoredMembership;
use kunci_core::command::{Command, Entry};
use kunci_core::event::{Event, Mark};
use kunci_core::reply::{Placed, Reply};
use kunci_types::{ClusterTime, Origin};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Looks on while the log is applied.
///
/// Called by the task that applies, in the log's order, behind what it says: whatever is said here is committed. It must
/// not block: the locks stand still meanwhile. It is shown secrets, which it must keep.
pub trait Observer: fmt::Debug + Send + Sync {
    /// The replica begins with a state that has all entries up to `index` in it; the next ones are shown. Those up to
    /// `log_end` were in its log already: nobody waits for them, and to be shown them may take a while.
    fn begins(&self, node_id: u64, cluster_id: ClusterId, index: u64, log_end: u64);

    /// An entry was applied.
    fn applied(&self, seen: Seen);

    /// The entries up to `index` are in a snapshot from now on. After a restart those might not be shown again.
    fn will_be_skipped(&self, index: u64);

    /// The state was replaced by another member's, so the entries up to `index` that weren't shown never will be.
    fn skipped(&self, index: u64);

    /// A command was refused without being proposed: the log knows nothing of it. `None`: it came too late.
    fn refused(&self, command: &Command, origin: &Origin, why: Option<Refusal>);
}

/// One applied entry.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its index in the log.
    pub index: u64,
    /// The cluster time at which it took effect.
    pub cluster_time: ClusterTime,
    /// What it was.
    pub what: SeenEntry,
}

/// What an applied entry was.
#[derive(Clone, Debug)]
pub enum SeenEntry {
    /// Commands, or only the time.
    Commands {
        /// The entry.
        entry: Entry,
        /// One for each command.
        replies: Vec<Placed<Reply>>,
        /// What happened, in order of revision.
        events: Vec<Arc<Event>>,
        /// What is to be known of some of the events besides.
        marks: Vec<Mark>,
    },
    /// Other members.
    Members {
        /// Each set of voters whose quorum counts: one, or two while the change is made.
        voters: Vec<BTreeSet<u64>>,
        /// Members without a vote.
        learners: BTreeSet<u64>,
    },
}

impl SeenEntry {
    pub(crate) fn members(stored: &StoredMembership) -> Self {
        let membership = stored.membership();
        let voters = membership.get_joint_config().clone();
        Self::Members { voters, learners: membership.learner_ids().collect() }
    }
}
