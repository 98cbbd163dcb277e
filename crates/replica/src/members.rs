//! Who belongs to the cluster: adding, replacing and removing members, one change at a time.
//!
//! Owns: the rules of a change. A new node is a learner until it has caught up; then the leader makes it a voter, or
//! puts it in the place of the one that it replaces. Node ids are given out once. Never: removes a member that
//! nobody asked to remove.

use crate::answered::Refusal;
use crate::batcher::{AGAIN_AFTER, puts_off};
use crate::data_folder::ClusterId;
use crate::hand_over::Preference;
use crate::raft_types::Member;
use crate::seat::{Membership, Seat, is_heard, matched};
use crate::term::Phase;
use crate::transport::Who;
use kunci_process::{sleep, timeout};
use openraft::ChangeMembers;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::ChangeMembershipError::InProgress;
use openraft::errors::ClientWriteError::{ChangeMembershipError, ForwardToLeader};
use openraft::errors::RaftError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::MutexGuard;

/// How long a change may take to be committed before its outcome counts as unknown.
const COMMITTED_WITHIN: Duration = Duration::from_secs(10);
/// How long a removal waits for members that weren't heard of lately before it counts them as down.
const HEARD_WITHIN: Duration = Duration::from_secs(1);
/// How long a change waits for the one before it.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);
/// How often a leader looks after the members.
const TEND_EVERY: Duration = Duration::from_millis(250);
/// A learner that lacks at most this many entries has caught up (trap 7 of the design: one that lacks all of them
/// can look ready, so what it has is looked at, not what the library says of it).
const CAUGHT_UP_LAG: u64 = 10;

/// A node was taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// Its id.
    pub node_id: u64,
    /// It had been taken in before.
    pub already: bool,
}

/// A member was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// It had been removed before.
    pub already: bool,
}

/// Why the members stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefused {
    /// This node can't change anything now, or can't know whether it did.
    #[error(transparent)]
    Undecided(#[from] Refusal),
    /// Another change isn't finished.
    #[error("{0}; there is one change of the members at a time: wait for it, or remove that node")]
    InProgress(String),
    /// Nobody, or not a node of kunci, answers at an address.
    #[error("no new node answers at {address}: {why}; check the address and that the node runs")]
    Unreachable {
        /// The peer address.
        address: String,
        /// What happened.
        why: String,
    },
    /// The node there belongs to another cluster.
    #[error(
        "the node at {address} belongs to cluster {found}; if its data isn't needed, stop it, move its data folder \
         away and start it again with an empty one"
    )]
    OtherCluster {
        /// The peer address.
        address: String,
        /// Its cluster.
        found: ClusterId,
    },
    /// The node there was removed from this cluster.
    #[error(
        "the node at {address} is node {node_id}, which was removed; ids are used once: stop it, move its data folder \
         away and start it again with an empty one"
    )]
    WasRemoved {
        /// The peer address.
        address: String,
        /// The node.
        node_id: u64,
    },
    /// A member's data is gone.
    #[error(
        "node {node_id} at {address} has lost its data and can't go on under its old id: `kunci cluster replace \
         {node_id} {address}` takes it in under a new one"
    )]
    Emptied {
        /// The peer address.
        address: String,
        /// The member.
        node_id: u64,
    },
    /// No such member.
    #[error("node {node_id} is no voter of this cluster; `kunci cluster status` lists the members")]
    NotAMember {
        /// The id.
        node_id: u64,
    },
    /// The change would leave no quorum that lives.
    #[error(
        "without node {node_id} only {healthy} of {voters} voters are known to be up, which is no quorum; bring one back \
         first, or say --force if the others are up all the same"
    )]
    Unsafe {
        /// The member.
        node_id: u64,
        /// Voters that would be up.
        healthy: usize,
        /// Voters that there would be.
        voters: usize,
    },
    /// The last voter can't go.
    #[error("node {node_id} is the only voter; a cluster without voters is no cluster")]
    LastVoter {
        /// The member.
        node_id: u64,
    },
    /// A member can't lead now.
    #[error(
        "node {node_id} can't take over now: it isn't heard of, lacks part of the log, or its disk is in trouble"
    )]
    NotReady {
        /// The member.
        node_id: u64,
    },
    /// No member can lead instead of this one.
    #[error("no other voter can take over now")]
    NobodyReady,
}

impl Seat {
    /// Takes in the new node at `peer` as a learner, with `replaces` in the place of that member once it has caught up.
    pub(crate) async fn add(&self, peer: &str, replaces: Option<u64>) -> Result<Added, ChangeRefused> {
        let _changing = self.begin_change().await?;
        let membership = self.settled_membership().await?;
        if let Some(node_id) = replaces.filter(|id| !membership.voters.contains(id)) {
            return Err(ChangeRefused::NotAMember { node_id });
        }
        let next_id = self.ids_used() + 1;
        let known = membership.newest_at(peer);
        // One whose invitation was lost is asked for by the id that it has already.
        let pending =
            known.filter(|id| !membership.voters.contains(id) && matched(&self.metrics(), *id).is_none());
        // A certificate names its node, so one has to know whom to expect.
        let expected = known.filter(|id| Some(*id) != replaces).unwrap_or(next_id);
        let member = match self.who(peer, expected).await? {
            Who::Node { cluster_id, .. } if cluster_id != self.me.cluster_id => {
                return Err(ChangeRefused::OtherCluster { address: peer.to_owned(), found: cluster_id });
            }
            Who::Node { node_id, .. } if membership.members.contains_key(&node_id) => {
                return Ok(Added { node_id, already: true });
            }
            Who::Node { node_id, .. } => {
                return Err(ChangeRefused::WasRemoved { address: peer.to_owned(), node_id });
            }
            Who::New { member } => member,
        };
        if let Some(node_id) = pending {
            self.invite(peer, node_id).await?;
            return Ok(Added { node_id, already: true });
        }
        if let Some(node_id) = known.filter(|id| Some(*id) != replaces) {
            return Err(ChangeRefused::Emptied { address: peer.to_owned(), node_id });
        }
        check_no_learner(&membership)?;
        if member.peer != peer {
            // The others will use the address that the node says it has.
            self.who(&member.peer, next_id).await?;
        }
        let member = Member { replaces, ..member };
        let nodes = BTreeMap::from([(next_id, member)]);
        self.change(ChangeMembers::AddNodes(nodes)).await?;
        if let Err(refused) = self.invite(peer, next_id).await {
            // Its id is used up; that is cheaper than a member that may never come.
            drop(self.change(ChangeMembers::RemoveNodes(BTreeSet::from([next_id]))).await);
            return Err(refused);
        }
        tracing::info!(node = next_id, %peer, ?replaces, "took in a new node, as a learner until it has caught up");
        Ok(Added { node_id: next_id, already: false })
    }

    /// Removes a member, voter or learner.
    pub(crate) async fn remove(&self, node_id: u64, force: bool) -> Result<Removed, ChangeRefused> {
        let _changing = self.begin_change().await?;
        let membership = self.settled_membership().await?;
        if !membership.members.contains_key(&node_id) {
            let was_one = node_id != 0 && node_id <= self.ids_used();
            return if was_one {
                Ok(Removed { already: true })
            } else {
                Err(ChangeRefused::NotAMember { node_id })
            };
        }
        let change = if membership.voters.contains(&node_id) {
            let mut voters = membership.voters.clone();
            voters.remove(&node_id);
            self.check_safe(node_id, &voters, force).await?;
            if node_id == self.me.node_id {
                // A leader that removes itself would leave without having told everybody.
                self.hand_over(None).await?;
                return Err(Refusal::NoLeader.into());
            }
            ChangeMembers::RemoveVoters(BTreeSet::from([node_id]))
        } else {
            ChangeMembers::RemoveNodes(BTreeSet::from([node_id]))
        };
        self.change(change).await?;
        tracing::info!(node = node_id, "removed a member");
        Ok(Removed { already: false })
    }

    async fn check_safe(
        &self,
        node_id: u64,
        voters: &BTreeSet<u64>,
        force: bool,
    ) -> Result<(), ChangeRefused> {
        if voters.is_empty() {
            return Err(ChangeRefused::LastVoter { node_id });
        }
        let mut metrics = self.raft.metrics();
        let is_up = |id: &u64| *id == self.me.node_id || is_heard(&self.metrics(), *id);
        let healthy = || voters.iter().filter(|id| is_up(id)).count();
        // A leader that has just taken over hears of the others one after another.
        let enough = async { while healthy() * 2 <= voters.len() && metrics.changed().await.is_ok() {} };
        if force {
            return Ok(());
        }
        drop(timeout(HEARD_WITHIN, enough).await);
        match healthy() {
            healthy if healthy * 2 > voters.len() => Ok(()),
            healthy => Err(ChangeRefused::Unsafe { node_id, healthy, voters: voters.len() }),
        }
    }

    async fn begin_change(&self) -> Result<MutexGuard<'_, ()>, ChangeRefused> {
        self.term.check_served()?;
        let changing = timeout(SETTLED_WITHIN, self.changing.lock()).await;
        changing.map_err(|_| ChangeRefused::InProgress("a change is under way".to_owned()))
    }

    /// The membership, once no change of it is half done.
    async fn settled_membership(&self) -> Result<Membership, ChangeRefused> {
        let mut metrics = self.raft.metrics();
        let settled = async {
            loop {
                let membership = Membership::of(&metrics.borrow_watched());
                if membership.is_committed && !membership.is_joint {
                    return Ok(membership);
                }
                metrics.changed().await.map_err(|_| Refusal::NoLeader)?;
            }
        };
        let half_done = |_| ChangeRefused::InProgress("a change isn't on a quorum's disks yet".to_owned());
        timeout(SETTLED_WITHIN, settled).await.map_err(half_done)?
    }

    async fn who(&self, address: &str, next_id: u64) -> Result<Who, ChangeRefused> {
        self.dialer.who(address, next_id).await.map_err(|error| unreachable(address, &error))
    }

    async fn invite(&self, address: &str, node_id: u64) -> Result<(), ChangeRefused> {
        let Err(error) = self.dialer.invite(address, node_id).await else { return Ok(()) };
        // The answer may be what was lost.
        match self.who(address, node_id).await {
            Ok(Who::Node { node_id: there, cluster_id, .. })
                if there == node_id && cluster_id == self.me.cluster_id =>
            {
                Ok(())
            }
            Ok(_) | Err(_) => Err(unreachable(address, &error)),
        }
    }

    async fn change(&self, change: ChangeMembers<u64, Member>) -> Result<(), ChangeRefused> {
        let surely = async {
            loop {
                match self.raft.change_membership(change.clone(), false).await {
                    Err(RaftError::APIError(error))
                        if puts_off(&error) && self.term.check_served().is_ok() =>
                    {
                        sleep(AGAIN_AFTER).await;
                    }
                    done => return done,
                }
            }
        };
        match timeout(COMMITTED_WITHIN, surely).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(RaftError::APIError(ForwardToLeader(_)))) => Err(Refusal::NoLeader.into()),
            Ok(Err(RaftError::APIError(ChangeMembershipError(error @ InProgress(_))))) => {
                Err(ChangeRefused::InProgress(error.to_string()))
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "a change of the members failed");
                Err(Refusal::OutcomeUnknown.into())
            }
            Err(_) => Err(Refusal::OutcomeUnknown.into()),
        }
    }

    /// The one change that is due by itself, if any: a half-done one to be finished, a learner that has caught up, a
    /// member that has moved.
    fn due_change(&self) -> Option<ChangeMembers<u64, Member>> {
        let membership = self.membership();
        if !membership.is_committed {
            return None;
        }
        if membership.is_joint {
            // Its leader died between the two steps.
            return Some(ChangeMembers::ReplaceAllVoters(membership.voters));
        }
        self.due_promotion(&membership).or_else(|| self.due_move(&membership))
    }

    fn due_promotion(&self, membership: &Membership) -> Option<ChangeMembers<u64, Member>> {
        let metrics = self.metrics();
        let last = metrics.last_log_index?;
        let has_caught_up = |id: u64| {
            let lacks = matched(&metrics, id).map(|matched| last.saturating_sub(matched));
            lacks.is_some_and(|lacks| lacks <= CAUGHT_UP_LAG) && self.vitals.lately(id).is_some()
        };
        let (id, member) = membership.learners().find(|(id, _)| has_caught_up(*id))?;
        let mut voters = membership.voters.clone();
        voters.insert(id);
        if let Some(replaced) = member.replaces {
            voters.remove(&replaced);
        }
        tracing::info!(node = id, replaces = ?member.replaces, "a learner has caught up: it becomes a voter");
        let done = BTreeMap::from([(id, Member { replaces: None, ..member.clone() })]);
        Some(ChangeMembers::Batch(vec![
            ChangeMembers::SetNodes(done),
            ChangeMembers::ReplaceAllVoters(voters),
        ]))
    }

    fn due_move(&self, membership: &Membership) -> Option<ChangeMembers<u64, Member>> {
        let moved = |(id, member): (&u64, &Member)| {
            let said =
                if *id == self.me.node_id { self.member.clone() } else { self.vitals.lately(*id)?.member };
            let now = Member { replaces: member.replaces, ..said };
            (now != *member).then_some((*id, now))
        };
        let (id, now) = membership.members.iter().find_map(moved)?;
        tracing::info!(node = id, peer = %now.peer, http = %now.http, "a member is reached elsewhere now, or is described otherwise");
        Some(ChangeMembers::SetNodes(BTreeMap::from([(id, now)])))
    }

    async fn tend_once(&self) {
        let Ok(_changing) = self.changing.try_lock() else { return };
        let Some(change) = self.due_change() else { return };
        let leaves = matches!(&change, ChangeMembers::Batch(changes)
            if changes.iter().any(|change| matches!(change, ChangeMembers::ReplaceAllVoters(voters) if !voters.contains(&self.me.node_id))));
        // A leader that is to be replaced lets another one do it.
        let done = if leaves { self.hand_over(None).await.map(drop) } else { self.change(change).await };
        if let Err(refused) = done {
            tracing::warn!(%refused, "a change of the members is due and can't be made now");
        }
    }
}

/// Looks after the members while this node leads, until the replica ends.
pub(crate) async fn tend(seat: Arc<Seat>) {
    let mut every = kunci_process::interval(TEND_EVERY);
    let mut preference = Preference::default();
    loop {
        tokio::select! {
            biased;
            () = seat.stopped.cancelled() => return,
            _ = every.tick() => {}
        }
        if let Some(better) = preference.due(&seat) {
            tracing::info!(to = better, "another member should lead");
            // What went wrong was said, and it is tried again later.
            drop(seat.hand_over(Some(better)).await);
        }
        if seat.term.phase() == Phase::Serving {
            seat.tend_once().await;
        }
    }
}

fn check_no_learner(membership: &Membership) -> Result<(), ChangeRefused> {
    match membership.learners().next() {
        Some((id, _)) => Err(ChangeRefused::InProgress(format!("node {id} is still catching up"))),
        None => Ok(()),
    }
}

fn unreachable(address: &str, error: &dyn std::fmt::Display) -> ChangeRefused {
    ChangeRefused::Unreachable { address: address.to_owned(), why: error.to_string() }
}
