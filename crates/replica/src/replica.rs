//! One node's share of the agreement, as the rest of the house sees it: propose, read, watch, who leads, members,
//! status.

use crate::answered::{Answered, Refusal};
use crate::batcher::Proposal;
use crate::data_folder::ClusterId;
use crate::events::{Compacted, Watch};
use crate::lead::Lead;
use crate::members::{Added, ChangeRefused, Removed};
use crate::raft_types::TypeConfig;
use crate::seat::{Membership, Seat};
use crate::state_machine::StateMachine;
use crate::status::{Counts, DiskState, MemberStatus, NodeStatus, Role};
use crate::transport::{BoxedStream, CallsFrom};
use crate::waiting_room::WaitingRoom;
use kunci_core::command::Command;
use kunci_core::event::Event;
use kunci_core::reply::Reply;
use kunci_core::view::View;
use kunci_core::{LockTable, RequestKey};
use kunci_process::timeout;
use kunci_types::{Origin, ResourceName, Revision};
use openraft::ServerState;
use openraft::errors::{LinearizableReadError, RaftError};
use openraft::raft::ReadPolicy;
use openraft::raft::linearizable_read::LinearizerOption;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// How long a read may wait for the leader's proof that it leads.
const READ_WITHIN: Duration = Duration::from_secs(2);
/// How long giving leadership away may take before a stop goes on without.
const HAND_OVER_WITHIN: Duration = Duration::from_secs(2);

pub(crate) type Raft = openraft::Raft<TypeConfig, StateMachine>;

/// One node's share of the agreement. A clone is another handle to the same.
#[derive(Clone)]
pub struct Replica {
    pub(crate) seat: Arc<Seat>,
}

impl Replica {
    /// Proposes a command and waits until it is on a quorum's disks and applied.
    ///
    /// # Errors
    /// When nothing was proposed, or the outcome can't be known here.
    pub async fn propose(&self, command: Command) -> Result<Answered<Reply>, Refusal> {
        self.propose_from(command, Origin::UNKNOWN).await
    }

    /// Proposes a command that came from `origin`; the audit log says so.
    ///
    /// # Errors
    /// As [`Replica::propose`].
    pub async fn propose_from(&self, command: Command, origin: Origin) -> Result<Answered<Reply>, Refusal> {
        self.submit(command, origin, None)?.await.unwrap_or(Err(Refusal::OutcomeUnknown))
    }

    pub(crate) fn submit(
        &self,
        command: Command,
        origin: Origin,
        too_late: Option<Instant>,
    ) -> Result<oneshot::Receiver<Result<Answered<Reply>, Refusal>>, Refusal> {
        if let Err(refusal) = self.check_proposed(&command) {
            return Err(self.refused(&command, &origin, refusal));
        }
        #[cfg(kunci_plants)]
        if let Some(answered) = self.answered_alone(&command) {
            return answered;
        }
        let (reply, receiver) = oneshot::channel();
        let submitted = self.seat.batcher.submit(Proposal { command, origin, reply, too_late });
        submitted.map_err(|(refusal, back)| self.refused(&back.command, &back.origin, refusal))?;
        Ok(receiver)
    }

    /// Tells of a command that isn't proposed.
    fn refused(&self, command: &Command, origin: &Origin, refusal: Refusal) -> Refusal {
        if let Some(observer) = &self.seat.machine.observer {
            observer.refused(command, origin, Some(refusal));
        }
        refusal
    }

    /// Whether a command may be proposed now.
    fn check_proposed(&self, command: &Command) -> Result<(), Refusal> {
        self.seat.term.check_served()?;
        // Level 1 is every release's; the state is asked only for what came later.
        let level = command.feature_level();
        if level > 1 && level > self.seat.machine.view(|state| state.table.feature_level()) {
            return Err(Refusal::NotEnabled);
        }
        if self.seat.is_storage_low() && self.is_new(command) {
            return Err(Refusal::StorageLow);
        }
        Ok(())
    }

    /// What a planted bug answers without a quorum.
    #[cfg(kunci_plants)]
    fn answered_alone(
        &self,
        command: &Command,
    ) -> Option<Result<oneshot::Receiver<Result<Answered<Reply>, Refusal>>, Refusal>> {
        let at = self.seat.machine.answered(Clone::clone);
        let alone = crate::planted::with(|planted| planted.answers_alone(&at.value, command))??;
        let (reply, receiver) = oneshot::channel();
        if let Some(said) = alone.reply {
            // Nobody has dropped the receiver yet.
            let _ = reply.send(Ok(at.map(|_| said)));
        }
        if alone.is_proposed {
            let (reply, _) = oneshot::channel();
            let proposal =
                Proposal { command: command.clone(), origin: Origin::UNKNOWN, reply, too_late: None };
            let _ = self.seat.batcher.submit(proposal);
        }
        Some(Ok(receiver))
    }

    /// Whether a command would begin something that needs room for long.
    fn is_new(&self, command: &Command) -> bool {
        let Command::Acquire(acquire) = command else { return false };
        let request = RequestKey::new(&acquire.caller, &acquire.request_id);
        self.seat.machine.view(|state| !state.table.remembers(&request))
    }

    /// Looks at the locks, not before everything that was acknowledged when the read began.
    ///
    /// # Errors
    /// When this node can't prove that it leads.
    pub async fn read<T>(&self, view: impl FnOnce(&View<'_>) -> T) -> Result<Answered<T>, Refusal> {
        self.seat.term.check_served()?;
        // Read-index only: a lease read isn't safe in this version of the library (trap 4 of the design).
        // By itself it gives up sooner than this node gives up its term: disks that are slow for a moment are enough.
        let patient = LinearizerOption::from(ReadPolicy::ReadIndex).with_wait_timeout(READ_WITHIN);
        let proof = self.seat.raft.ensure_linearizable(patient);
        let proved = tokio::select! {
            biased;
            proved = timeout(READ_WITHIN, proof) => proved,
            () = self.seat.term.over() => return Err(self.seat.term.refusal()),
        };
        match proved {
            // Between two entries only the leader's clock says how much of a lease is left.
            Ok(Ok(_)) => {
                let now = self.seat.term.now().ok_or(Refusal::NoLeader)?;
                #[cfg(kunci_plants)]
                if let Some(Some(other)) = self
                    .seat
                    .machine
                    .view(|state| crate::planted::with(|planted| planted.looks_at(&state.table)))
                {
                    return Ok(self.seat.machine.answered(|_| view(&other.seen_at(now))));
                }
                Ok(self.seat.machine.answered(|table| view(&table.seen_at(now))))
            }
            Ok(Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(_)))) => Err(Refusal::NoLeader),
            Ok(Err(RaftError::Fatal(_))) => Err(Refusal::NoLeader),
            Ok(Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)))) | Err(_) => {
                Err(Refusal::NoQuorum)
            }
        }
    }

    /// Looks at this node's own state, which may be behind. For pages about the node, never about locks.
    pub fn local_view<T>(&self, view: impl FnOnce(&LockTable) -> T) -> Answered<T> {
        self.seat.machine.answered(view)
    }

    /// Watches events from after a revision, or from now on.
    ///
    /// # Errors
    /// When events after that revision are no longer kept.
    pub fn watch(&self, after: Option<Revision>) -> Result<Watch, Compacted> {
        self.seat.machine.events.watch(after)
    }

    /// The kept events of one resource, the last `limit` of them, oldest first.
    pub fn history(&self, resource: &ResourceName, limit: usize) -> Vec<Event> {
        self.seat.machine.events.history(resource, limit)
    }

    /// The node.
    pub fn node_id(&self) -> u64 {
        self.seat.me.node_id
    }

    /// The cluster.
    pub fn cluster_id(&self) -> ClusterId {
        self.seat.me.cluster_id
    }

    /// How many calls wait on this node.
    pub fn waiting_calls(&self) -> usize {
        self.room().len()
    }

    /// Who leads, as far as this node can tell now.
    pub fn lead(&self) -> Lead {
        self.seat.lead.borrow().clone()
    }

    /// Who leads, and each change of it.
    pub fn lead_changes(&self) -> watch::Receiver<Lead> {
        self.seat.lead.subscribe()
    }

    /// Opens a connection to another member, over which clients' calls are passed on: HTTP/2 from the first byte.
    ///
    /// # Errors
    /// When the member isn't known, can't be reached, or refuses.
    pub async fn open_calls(&self, node_id: u64) -> io::Result<BoxedStream> {
        self.seat.open_calls(node_id).await
    }

    /// The connections that other members open to pass calls on. `None` when somebody has taken them already.
    pub fn take_calls(&self) -> Option<mpsc::Receiver<CallsFrom>> {
        self.seat.calls.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes in the new node whose peer door is at `peer`, a `host:port`. It is a learner until it has caught up, and
    /// becomes a voter by itself then.
    ///
    /// # Errors
    /// When there is no new node there, another change is under way, or this node doesn't lead.
    pub async fn add_member(&self, peer: &str) -> Result<Added, ChangeRefused> {
        self.seat.add(peer, None).await
    }

    /// Takes in the new node at `peer`; once it has caught up, it takes the place of voter `node_id` in one step.
    ///
    /// # Errors
    /// As [`Replica::add_member`], and when there is no such voter.
    pub async fn replace_member(&self, node_id: u64, peer: &str) -> Result<Added, ChangeRefused> {
        self.seat.add(peer, Some(node_id)).await
    }

    /// Removes a member. With `force` also when the voters that are left are no quorum as far as is known.
    ///
    /// # Errors
    /// When there is no such member, another change is under way, or this node doesn't lead; a leader that is asked to
    /// remove itself first gives leadership away and refuses then, for the new leader to be asked.
    pub async fn remove_member(&self, node_id: u64, force: bool) -> Result<Removed, ChangeRefused> {
        self.seat.remove(node_id, force).await
    }

    /// Gives leadership to voter `to`, or to the fittest one. Returns the new leader.
    ///
    /// # Errors
    /// When this node doesn't lead, or nobody could take over; it goes on leading then.
    pub async fn transfer_lead(&self, to: Option<u64>) -> Result<u64, ChangeRefused> {
        self.seat.hand_over(to).await
    }

    /// Before a graceful stop: if this node leads and another could, gives leadership away, for at most 2 s. Calls that
    /// wait here end with a retriable error then.
    pub async fn hand_over(&self) {
        if self.seat.membership().voters.len() < 2 {
            return;
        }
        match timeout(HAND_OVER_WITHIN, self.seat.hand_over(None)).await {
            // Not the leader: there is nothing to give away.
            Ok(Ok(_) | Err(ChangeRefused::Undecided(_))) => {}
            Ok(Err(refused)) => {
                tracing::warn!(%refused, "stopping as the leader: the others will have to elect one");
            }
            Err(_) => tracing::warn!("a hand-over took too long: the others will have to elect a leader"),
        }
    }

    /// How this node stands, as it knows by itself; no quorum is asked.
    pub fn status(&self) -> NodeStatus {
        let seat = &self.seat;
        let metrics = seat.metrics();
        let role = match metrics.state {
            ServerState::Leader => Role::Leader,
            ServerState::Candidate => Role::Candidate,
            ServerState::Learner => Role::Learner,
            ServerState::Follower | ServerState::Shutdown => Role::Follower,
        };
        let lead = self.lead();
        let leader = match &lead {
            Lead::Here => Some(seat.me.node_id),
            Lead::At { node_id, .. } => Some(*node_id),
            Lead::Nobody { .. } => None,
        };
        let state = seat.machine.answered(|table| Counts {
            held: table.held_count(),
            waiters: table.waiter_count(),
            requests: table.request_count(),
        });
        NodeStatus {
            node_id: seat.me.node_id,
            cluster_id: seat.me.cluster_id,
            role,
            leader,
            serving: leader.is_some(),
            applied_index: state.position.index,
            revision: state.revision,
            cluster_time: state.cluster_time,
            ids_used: seat.ids_used(),
            counts: state.value,
            members: self.members(role, leader, &Membership::of(&metrics)),
        }
    }

    fn members(&self, role: Role, leader: Option<u64>, membership: &Membership) -> Vec<MemberStatus> {
        let seat = &self.seat;
        let mut pulses =
            if leader == Some(seat.me.node_id) { seat.vitals.all_lately() } else { seat.vitals.told() };
        pulses.insert(seat.me.node_id, seat.pulse());
        let of = |(id, member): (&u64, &crate::raft_types::Member)| {
            let pulse = pulses.get(id);
            let role = match *id {
                id if id == seat.me.node_id => role,
                id if Some(id) == leader => Role::Leader,
                id if membership.sure_voters.contains(&id) => Role::Follower,
                _ => Role::Learner,
            };
            MemberStatus {
                id: *id,
                role,
                peer: member.peer.clone(),
                http: member.http.clone(),
                native: member.native.clone(),
                zone: member.zone.clone(),
                priority: member.priority,
                healthy: pulse.is_some_and(|pulse| !pulse.disk_stuck),
                disk: pulse.map(DiskState::of),
                applied_index: pulse.map_or(0, |pulse| pulse.applied_index),
            }
        };
        membership.members.iter().map(of).collect()
    }

    /// Waits until requests are answered, by this node or by a leader that it knows, for at most `within`.
    pub async fn serving(&self, within: Duration) -> bool {
        let mut lead = self.lead_changes();
        let served = lead.wait_for(|lead| !matches!(lead, Lead::Nobody { .. }));
        timeout(within, served).await.is_ok_and(|waited| waited.is_ok())
    }

    /// Waits until the replica can't go on, and says why. The process should end then.
    pub async fn failed(&self) -> String {
        let mut failed = self.seat.failed.subscribe();
        let why = failed.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        match why {
            Some(why) => why,
            // The sender lives as long as this handle.
            None => std::future::pending().await,
        }
    }

    /// Makes a snapshot now, in the background. Of a node that has applied nothing there is none: beside a log without
    /// a vote, which it may well have, it would look as if the vote were lost.
    pub async fn trigger_snapshot(&self) {
        if self.seat.metrics().last_applied.is_none() {
            return;
        }
        // A failure shows in `failed`.
        drop(self.seat.raft.trigger().snapshot().await);
    }

    /// Stops in good order: waiting calls end with a retriable error, then the log is closed.
    pub async fn stop(&self) {
        self.seat.stop().await;
    }

    pub(crate) fn room(&self) -> &WaitingRoom {
        &self.seat.machine.room
    }

    pub(crate) fn waiter_grace_ms(&self) -> u64 {
        self.seat.machine.view(|state| state.table.policy().waiter_grace_ms)
    }
}
