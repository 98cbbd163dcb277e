//! Giving leadership away: before a graceful stop, on an operator's wish, to a member that is preferred, and when this
//! node's disk hangs or is nearly full.
//!
//! Owns: the order of the steps, so that nothing that was proposed is lost and hardly anything waits: stop proposing,
//! let what is on its way be applied, make sure that the target has it all, and ask it to stand for election. When
//! it doesn't win in time this node goes on as if nothing had been asked. Never: the library's own transfer, after
//! which a leader takes no writes in that term, whatever becomes of the target (trap 6 of the design).

use crate::answered::Refusal;
use crate::members::ChangeRefused;
use crate::raft_types::LogId;
use crate::seat::{Membership, Seat, is_heard, matched};
use crate::term::Phase;
use kunci_process::timeout;
use openraft::async_runtime::WatchReceiver;
use openraft::raft::TransferLeaderRequest;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long what is on its way may take to be applied here and copied to the target.
const SETTLED_WITHIN: Duration = Duration::from_millis(500);
/// How long the target may take to be elected.
const ELECTED_WITHIN: Duration = Duration::from_millis(500);
/// A target that lacks more entries than this is no target: the others would wait for it.
const LAG_MAX: u64 = 1_000;
/// How long a better leader must have been there, and this node must have led, before leadership moves to it. So a
/// member that comes and goes doesn't take leadership along each time.
const PREFERRED_FOR: Duration = Duration::from_secs(10);
/// From a hand-over that failed to the next that nobody asked for.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

impl Seat {
    /// Gives leadership to `to`, or to the fittest member. Returns the new leader.
    ///
    /// # Errors
    /// When this node doesn't lead, or nobody could take over; it goes on leading then.
    pub(crate) async fn hand_over(&self, to: Option<u64>) -> Result<u64, ChangeRefused> {
        let _one_at_a_time = self.handing_over.lock().await;
        self.term.check_served()?;
        let targets = self.targets();
        let targets = match to {
            Some(to) if to == self.me.node_id => return Ok(to),
            Some(to) if !self.membership().voters.contains(&to) => {
                return Err(ChangeRefused::NotAMember { node_id: to });
            }
            Some(to) if !targets.contains(&to) => return Err(not_ready(to)),
            Some(to) => vec![to],
            None => targets,
        };
        for target in &targets {
            if !self.term.pause() {
                return Err(Refusal::NoLeader.into());
            }
            match self.give_to(*target).await {
                Some(leader) if leader == *target || to.is_none() => {
                    tracing::info!(to = leader, "handed leadership over");
                    return Ok(leader);
                }
                None if self.term.resume() => {
                    tracing::warn!(
                        to = target,
                        "the hand-over didn't succeed in time; this node goes on leading"
                    );
                }
                // This node leads no more, and whom we asked doesn't either.
                Some(_) | None => return Err(Refusal::NoLeader.into()),
            }
        }
        Err(targets.first().copied().map_or(ChangeRefused::NobodyReady, not_ready))
    }

    /// Asks `target` to stand for election, and waits for whoever is elected instead of this node. `None` when that
    /// is nobody in time.
    async fn give_to(&self, target: u64) -> Option<u64> {
        let last = timeout(SETTLED_WITHIN, self.settled(target)).await.ok()?;
        let member = self.roster.member(target)?;
        let request = TransferLeaderRequest::new(self.metrics().vote, target, last);
        let asked = self.asks.transfer(target, &member.peer, request, ELECTED_WITHIN).await;
        if let Err(error) = asked
            .as_ref()
            .map_err(ToString::to_string)
            .and_then(|answer| answer.as_ref().map_err(ToString::to_string))
        {
            tracing::warn!(to = target, %error, "asked for a hand-over in vain");
            // An answer that was lost or late is no word on the election: a node that leads no more looks who does.
            if self.leads() {
                return None;
            }
        }
        timeout(ELECTED_WITHIN, self.elected_elsewhere()).await.ok()?
    }

    fn leads(&self) -> bool {
        self.metrics().current_leader == Some(self.me.node_id)
    }

    /// Waits until another node leads, and tells which. `None` when the library has ended.
    async fn elected_elsewhere(&self) -> Option<u64> {
        let mut metrics = self.raft.metrics();
        loop {
            let leader = metrics.borrow_watched().current_leader;
            if let Some(leader) = leader.filter(|leader| *leader != self.me.node_id) {
                return Some(leader);
            }
            metrics.changed().await.ok()?;
        }
    }

    /// Waits until nothing is on its way, and the target has all of the log.
    async fn settled(&self, target: u64) -> Option<LogId> {
        self.term.idle().await;
        let mut metrics = self.raft.metrics();
        loop {
            {
                let now = metrics.borrow_watched();
                let applied = now.last_applied.map(|applied| applied.index);
                if applied == now.last_log_index && matched(&now, target) >= now.last_log_index {
                    return now.last_applied;
                }
            }
            // A library that has ended changes nothing any more; the caller's time bounds that.
            if metrics.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Who could lead, the fittest first.
    fn targets(&self) -> Vec<u64> {
        let metrics = self.metrics();
        let membership = Membership::of(&metrics);
        let lacks =
            |id: u64| metrics.last_log_index.unwrap_or(0).saturating_sub(matched(&metrics, id).unwrap_or(0));
        let mut targets: Vec<u64> = membership
            .voters
            .iter()
            .copied()
            .filter(|id| *id != self.me.node_id && lacks(*id) <= LAG_MAX && is_heard(&metrics, *id))
            .filter(|id| self.vitals.lately(*id).is_none_or(|pulse| !pulse.disk_stuck && !pulse.storage_low))
            .collect();
        let priority = |id: u64| membership.members.get(&id).map_or(0, |member| member.priority);
        targets.sort_by_key(|id| (std::cmp::Reverse(priority(*id)), lacks(*id), *id));
        targets
    }
}

fn not_ready(node_id: u64) -> ChangeRefused {
    ChangeRefused::NotReady { node_id }
}

/// Remembers for how long a better leader than this node has been there.
#[derive(Debug, Default)]
pub(crate) struct Preference {
    serving_since: Option<Instant>,
    better_since: BTreeMap<u64, Instant>,
    not_before: Option<Instant>,
}

impl Preference {
    /// The member that should lead instead of this node by now, if there is one.
    pub(crate) fn due(&mut self, seat: &Seat) -> Option<u64> {
        let now = kunci_process::now();
        if seat.term.phase() != Phase::Serving {
            *self = Self::default();
            return None;
        }
        let serving_since = *self.serving_since.get_or_insert(now);
        // Whoever leads takes new acquires, so it had better be one whose disk can take them.
        if seat.disk.is_stuck() || seat.disk.is_low() {
            return self.may_try(now).then(|| seat.targets().first().copied()).flatten();
        }
        let members = seat.membership().members;
        let mine = members.get(&seat.me.node_id).map_or(0, |member| member.priority);
        let targets = seat.targets();
        let better: Vec<u64> = targets
            .into_iter()
            .filter(|id| members.get(id).is_some_and(|member| member.priority > mine))
            .collect();
        self.better_since.retain(|id, _| better.contains(id));
        for id in &better {
            self.better_since.entry(*id).or_insert(now);
        }
        let is_due = |since: &Instant| now.saturating_duration_since(*since) >= PREFERRED_FOR;
        let best = better.into_iter().find(|id| self.better_since.get(id).is_some_and(is_due))?;
        (is_due(&serving_since) && self.may_try(now)).then_some(best)
    }

    fn may_try(&mut self, now: Instant) -> bool {
        let may = self.not_before.is_none_or(|not_before| now >= not_before);
        if may {
            self.not_before = Some(now + AGAIN_AFTER);
        }
        may
    }
}
