//! Who leads, as far as this node can tell now.
//!
//! Owns: the one answer that front doors act on, and its tempering: a leader that wasn't heard of lately counts as
//! none, whatever the library last knew.

use crate::raft_types::TypeConfig;
use crate::term::Phase;
use crate::transport::Roster;
use openraft::RaftMetrics;
use std::time::Duration;
use tokio::time::Instant;

/// A leader that sends a heartbeat every 50 ms and was silent for this long may be no leader any more.
const LEADER_SILENT_MAX: Duration = Duration::from_millis(500);
/// A leader that no quorum has answered for this long acknowledges nothing. Answers wait for the members' disks, so
/// this is longer than a slow sync.
pub(crate) const QUORUM_SILENT_MAX: Duration = Duration::from_secs(1);
/// Without a leader for this long, it isn't an election any more that is waited for.
const ELECTION_MAX: Duration = Duration::from_secs(2);

/// Who leads, as far as this node can tell now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lead {
    /// This node leads and serves.
    Here,
    /// Another member leads.
    At {
        /// The member.
        node_id: u64,
        /// `host:port` of its HTTP door.
        http: String,
        /// `host:port` of its native door.
        native: String,
    },
    /// Nobody, as far as this node can tell.
    Nobody {
        /// Why.
        why: NoLead,
        /// Since when.
        since: Instant,
    },
}

/// Why nobody leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLead {
    /// No quorum is reached: this node leads by name only, or has heard of no leader for long.
    NoQuorum,
    /// A leader is being elected, or takes over.
    Electing,
    /// This node leads and gives leadership away.
    HandingOver,
    /// This node was removed from its cluster.
    Removed,
}

/// What `lead` is found from.
pub(crate) struct Seen<'a> {
    pub(crate) node_id: u64,
    pub(crate) phase: Phase,
    pub(crate) metrics: &'a RaftMetrics<TypeConfig>,
    pub(crate) roster: &'a Roster,
    /// The answer before this one.
    pub(crate) before: &'a Lead,
}

impl Seen<'_> {
    /// Who leads now.
    pub(crate) fn lead(&self) -> Lead {
        match self.phase {
            Phase::Serving => Lead::Here,
            Phase::HandingOver => self.nobody(NoLead::HandingOver),
            Phase::WithoutQuorum => self.nobody(NoLead::NoQuorum),
            Phase::Away => self.followed().unwrap_or_else(|| self.leaderless()),
        }
    }

    fn followed(&self) -> Option<Lead> {
        let leader = self.metrics.current_leader.filter(|leader| *leader != self.node_id)?;
        let member = self.roster.member(leader)?;
        if self.roster.silent_for(leader).is_none_or(|silent| silent > LEADER_SILENT_MAX) {
            return None;
        }
        self.roster.note_followed();
        Some(Lead::At { node_id: leader, http: member.http, native: member.native })
    }

    fn leaderless(&self) -> Lead {
        if self.roster.is_removed() {
            return self.nobody(NoLead::Removed);
        }
        let since = self.since();
        let for_long = kunci_process::now().saturating_duration_since(since) > ELECTION_MAX;
        Lead::Nobody { why: if for_long { NoLead::NoQuorum } else { NoLead::Electing }, since }
    }

    fn nobody(&self, why: NoLead) -> Lead {
        Lead::Nobody { why, since: self.since() }
    }

    fn since(&self) -> Instant {
        match self.before {
            Lead::Nobody { since, .. } => *since,
            Lead::Here | Lead::At { .. } => kunci_process::now(),
        }
    }
}
