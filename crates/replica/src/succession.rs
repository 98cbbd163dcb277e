//! What follows when the process of the leader has ended.
//!
//! Owns: telling a leader that is gone from one that can't be reached or hesitates, and who stands for its place when.
//! Never: takes part in an election; that is the library's, and so is every rule that keeps it safe.
//!
//! A leader that falls silent may live, so its followers wait for an election timeout before they help another, and
//! for one more before they stand. A process that has ended isn't silent: its system closes its connections and refuses
//! new ones. Who sees both knows within a round trip what silence tells after half a second.
//!
//! One member can see that wrongly, for instance behind a firewall that refuses in the leader's place. It asks first
//! whether a quorum would vote for it (pre-vote), and the others, who hear the leader, would not.

use crate::raft_types::Vote;
use crate::replica::Raft;
use crate::transport::Dialer;
use openraft::async_runtime::WatchReceiver;
use openraft::raft::TransferLeaderRequest;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// From the end of the leader to the first that stands: the others have to see it too, or they would not vote.
const SEEN_BY_ALL_AFTER: Duration = Duration::from_millis(20);
/// From one that stands to the next, should the first be behind with its log, or gone as well.
const TURN: Duration = Duration::from_millis(60);
/// A process that ends may still be connected to for a moment: its connections are closed one after the other.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Looks after the leader's place. A clone is another handle to the same.
#[derive(Clone)]
pub(crate) struct Succession {
    raft: Raft,
    dialer: Dialer,
    /// Held while somebody looks: a leader has several connections, and they all end with it.
    looking: Arc<Mutex<()>>,
}

impl Succession {
    pub(crate) fn new(raft: Raft, dialer: Dialer) -> Self {
        Self { raft, dialer, looking: Arc::default() }
    }

    /// Takes note that a connection of a member has ended. If that member leads and its process has ended too, stands
    /// for its place when it is this node's turn, and lets the others do so.
    pub(crate) async fn connection_ended(&self, from: u64) {
        let Ok(_one_at_a_time) = self.looking.try_lock() else { return };
        let Some(vote) = self.vote_of_leader(from) else { return };
        let Some(turn) = self.turn(from) else { return };
        if !self.is_gone(from).await {
            return;
        }
        tracing::warn!(
            leader = from,
            "the process of the leader has ended; electing another without waiting for it"
        );
        // The library's word for "this leader gives its place up", here with nobody named for it: what remains is
        // that its followers needn't wait any longer.
        let given_up = TransferLeaderRequest::new(vote, from, None);
        if self.raft.handle_transfer_leader(given_up).await.is_err() {
            return;
        }
        kunci_process::sleep(SEEN_BY_ALL_AFTER + TURN * turn).await;
        if self.vote_of_leader(from) == Some(vote) {
            // The library has ended, or this node votes for somebody meanwhile. Nothing is left to do then.
            let _ = self.raft.trigger().elect(true).await;
        }
    }

    /// The vote by which `node_id` leads, as far as this node knows.
    fn vote_of_leader(&self, node_id: u64) -> Option<Vote> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        (metrics.current_leader == Some(node_id)).then_some(metrics.vote)
    }

    /// How many voters stand before this node, should `leader` be gone; `None` for a node without a vote. Whoever is
    /// preferred as leader stands first.
    fn turn(&self, leader: u64) -> Option<u32> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let membership = metrics.membership_config.membership();
        let priority = |id: u64| membership.get_node(&id).map_or(0, |member| member.priority);
        let mut voters: Vec<u64> = membership.voter_ids().filter(|id| *id != leader).collect();
        voters.sort_by_key(|id| (Reverse(priority(*id)), *id));
        let place = voters.iter().position(|id| *id == self.dialer.me().node_id)?;
        u32::try_from(place).ok()
    }

    async fn is_gone(&self, node_id: u64) -> bool {
        let Some(member) = self.dialer.roster().member(node_id) else { return false };
        if self.dialer.is_refused(&member.peer).await {
            return true;
        }
        kunci_process::sleep(LOOK_AGAIN_AFTER).await;
        self.dialer.is_refused(&member.peer).await
    }
}
