//! Who this node takes for a member, and when it last heard from whom.
//!
//! Owns: the answer to "may this node call me?", from the newest membership that is known here. Never: changes the
//! membership.

use crate::data_folder::ClusterId;
use crate::raft_types::Member;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Which node of which cluster this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Me {
    pub(crate) cluster_id: ClusterId,
    pub(crate) node_id: u64,
}

/// How a node stands to the newest membership known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is a voter or a learner.
    Member,
    /// Its id was used and is no member any more. It may neither vote nor be heard.
    Removed,
    /// Its id is newer than what is known here: this node may be behind, so it isn't refused.
    Newer,
}

/// The members as this node knows them. A clone is another handle to the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roster {
    inner: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    members: BTreeMap<u64, Member>,
    /// The largest node id that was ever given out, as far as it is applied here: an addition that is taken back
    /// gives its id back too.
    ids_used: u64,
    heard: BTreeMap<u64, Instant>,
    /// Another member said that this node was removed.
    is_removed: bool,
}

impl Roster {
    /// Takes over a newer membership.
    pub(crate) fn update(&self, members: BTreeMap<u64, Member>) {
        let mut known = self.known();
        known.heard.retain(|id, _| members.contains_key(id));
        known.members = members;
    }

    /// Takes over the largest node id that was ever given out.
    pub(crate) fn note_ids_used(&self, ids_used: u64) {
        self.known().ids_used = ids_used;
    }

    /// How `node_id` stands.
    pub(crate) fn standing(&self, node_id: u64) -> Standing {
        let known = self.known();
        if known.members.contains_key(&node_id) {
            Standing::Member
        } else if node_id <= known.ids_used {
            Standing::Removed
        } else {
            Standing::Newer
        }
    }

    /// How a member is reached.
    pub(crate) fn member(&self, node_id: u64) -> Option<Member> {
        self.known().members.get(&node_id).cloned()
    }

    /// Notes a sign of life: bytes of a member that passed its handshake.
    pub(crate) fn heard_from(&self, node_id: u64) {
        let mut known = self.known();
        if known.members.contains_key(&node_id) {
            known.heard.insert(node_id, kunci_process::now());
        }
    }

    /// How long ago a member was last heard from; `None` if never since the start.
    pub(crate) fn silent_for(&self, node_id: u64) -> Option<Duration> {
        let heard = self.known().heard.get(&node_id).copied()?;
        Some(kunci_process::now().saturating_duration_since(heard))
    }

    /// Notes that another member refused this node as removed.
    pub(crate) fn note_removed(&self) {
        self.known().is_removed = true;
    }

    /// Notes that a leader counts this node among the members: whoever said otherwise was behind.
    pub(crate) fn note_followed(&self) {
        self.known().is_removed = false;
    }

    /// Whether another member refused this node as removed, and no leader was followed since.
    pub(crate) fn is_removed(&self) -> bool {
        self.known().is_removed
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases C40 and C86: a removed node is told from one that this node doesn't know yet.
    #[test]
    fn an_id_that_was_used_before_is_no_member_and_a_larger_one_may_be() {
        let roster = Roster::default();
        let members = |ids: &[u64]| ids.iter().map(|id| (*id, Member::default())).collect();
        roster.note_ids_used(3);
        roster.update(members(&[1, 2, 3]));
        roster.update(members(&[1, 2]));

        assert_eq!(roster.standing(2), Standing::Member);
        assert_eq!(roster.standing(3), Standing::Removed);
        assert_eq!(roster.standing(4), Standing::Newer);
    }
}
