//! What a person is told while a node serves: who leads, and when nobody does.
//!
//! Owns: the words, and that each is said once for each change. Never: acts on what it tells.

use kunci_replica::{Lead, NoLead, Replica};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tracing::{info, warn};

/// How long a node may take to serve before it says that this is odd.
const SERVING_WITHIN: Duration = Duration::from_secs(10);

/// Tells where the node is, once it serves.
pub(super) async fn announce(replica: Replica, http: SocketAddr) {
    if replica.serving(SERVING_WITHIN).await {
        info!("serving HTTP on http://{http}; try: kunci status demo --url http://{http}");
    } else {
        warn!(
            "HTTP is open on http://{http}, but no leader is known after {} s; requests about locks are refused until \
             there is one. Are the other members up, and reachable? kunci cluster status --url http://{http}",
            SERVING_WITHIN.as_secs()
        );
    }
}

/// Tells who leads, and each change of it.
pub(super) async fn tell(replica: Replica, data: PathBuf) {
    let mut changes = replica.lead_changes();
    let mut said = None;
    loop {
        let news = News::of(&changes.borrow_and_update());
        if said.as_ref() != Some(&news) {
            news.say(&replica, &data);
            said = Some(news);
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// A change that matters to a person: not each new address of the same leader.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Leads,
    Follows(u64),
    Nobody(NoLead),
}

impl News {
    fn of(lead: &Lead) -> Self {
        match lead {
            Lead::Here => Self::Leads,
            Lead::At { node_id, .. } => Self::Follows(*node_id),
            Lead::Nobody { why, .. } => Self::Nobody(*why),
        }
    }

    fn say(&self, replica: &Replica, data: &std::path::Path) {
        let own = replica.node_id();
        match self {
            Self::Leads => info!("node {own}, this one, leads and serves"),
            Self::Follows(leader) => info!("node {leader} leads; requests to this node are passed on to it"),
            Self::Nobody(NoLead::Electing) => info!("nobody leads right now: a leader is being elected"),
            Self::Nobody(NoLead::HandingOver) => info!("this node gives leadership away"),
            Self::Nobody(NoLead::NoQuorum) => warn!(
                "no quorum: this node reaches too few members, so every request about locks is refused; it goes on by \
                 itself once more of them are up and reachable"
            ),
            Self::Nobody(NoLead::Removed) => warn!(
                "node {own}, this one, was removed from cluster {} and serves nothing any more; stop it. To use this \
                 machine for a node again, empty {} first: the new node gets a new id",
                replica.cluster_id(),
                data.display()
            ),
        }
    }
}
