//! What the connections of one client know together.
//!
//! Owns: which cluster this is, and who leads it as far as is known. Never: believes a server of another cluster while
//! one of its own is there.

use super::conversation::Welcome;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Known {
    facts: Mutex<Facts>,
}

#[derive(Debug, Default)]
struct Facts {
    cluster: Option<String>,
    leader: Option<Arc<str>>,
    /// Connections that are up.
    up: usize,
}

impl Known {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what a server at `address` said first.
    ///
    /// # Errors
    /// When it belongs to another cluster than those that are connected: its locks have nothing to do with theirs.
    pub(super) fn welcomed(&self, address: &str, welcome: Welcome) -> Result<(), String> {
        let mut facts = self.facts();
        let Some(found) = welcome.cluster else {
            return Err("the node belongs to no cluster yet".to_owned());
        };
        if let Some(cluster) = facts.cluster.as_ref().filter(|cluster| **cluster != found) {
            if facts.up > 0 {
                tracing::warn!(%address, %cluster, %found, "left out a server of another cluster");
                return Err(format!("it belongs to cluster {found}, the others to {cluster}"));
            }
            tracing::warn!(%address, %cluster, %found, "the addresses lead to another cluster than before");
            facts.leader = None;
        }
        facts.cluster = Some(found);
        if let Some(leader) = welcome.leader {
            facts.leader = Some(leader.into());
        }
        Ok(())
    }

    pub(super) fn up(&self) {
        self.facts().up += 1;
    }

    /// A connection to `address` is gone, and whoever led there may be too.
    pub(super) fn down(&self, address: &str) {
        let mut facts = self.facts();
        facts.up = facts.up.saturating_sub(1);
        facts.leader.take_if(|leader| **leader == *address);
    }

    pub(super) fn leader(&self) -> Option<Arc<str>> {
        self.facts().leader.clone()
    }

    pub(super) fn leads(&self, address: &str) {
        let mut facts = self.facts();
        if facts.leader.as_deref() != Some(address) {
            facts.leader = Some(address.into());
        }
    }

    /// A node that was taken for the leader doesn't lead.
    pub(super) fn leads_no_more(&self, address: &str) {
        self.facts().leader.take_if(|leader| **leader == *address);
    }

    pub(super) fn cluster(&self) -> Option<String> {
        self.facts().cluster.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cluster: &str) -> Welcome {
        Welcome { cluster: Some(cluster.to_owned()), leader: Some("b:1".to_owned()) }
    }

    /// C86: a cluster that was rebuilt under the same addresses is taken for what it is, and two are never mixed.
    #[test]
    fn a_server_of_another_cluster_is_left_out_while_one_of_ours_is_connected() {
        let known = Known::default();
        known.welcomed("a:1", of("one")).unwrap();
        known.up();
        let refused = known.welcomed("b:1", of("two")).unwrap_err();
        assert!(refused.contains("two") && refused.contains("one"), "{refused}");
        assert_eq!(known.cluster().as_deref(), Some("one"));

        known.down("a:1");
        known.welcomed("b:1", of("two")).unwrap();
        assert_eq!(known.cluster().as_deref(), Some("two"));
    }

    #[test]
    fn a_leader_is_known_until_its_connection_breaks_or_it_says_otherwise() {
        let known = Known::default();
        known.welcomed("a:1", of("one")).unwrap();
        assert_eq!(known.leader().as_deref(), Some("b:1"));
        known.down("a:1");
        assert_eq!(known.leader().as_deref(), Some("b:1"));
        known.down("b:1");
        assert_eq!(known.leader(), None);
        known.leads("a:1");
        known.leads_no_more("a:1");
        assert_eq!(known.leader(), None);
    }
}
