//! The one door into the replica: every front door's calls go through here and nowhere else.
//!
//! Owns: what a caller left out (ids and defaults), and the way from a request to a command and from a reply to
//! an answer. Never: a rule of the locks, or a protocol.

mod acquire;
mod answer;
mod cluster;
mod counters;
mod draw;
mod read;
mod refusal;
mod rejections;
pub(crate) mod wall_clock;

pub use acquire::{AcquireAnswer, OpenCall};
pub use counters::Counters;
pub(crate) use draw::draw_request_id;
pub use read::event_body;
pub use refusal::Refused;

use crate::audit::Audit;
use crate::trace;
use kunci_api::{
    CancelBody, Cancelled, Code, FencingRejection, FencingRejectionBody, ForceReleaseBody, Forced, GrantBody,
    PolicyAnswer, PolicyBody, PolicyChangeRequest, Problem, Proof, ReleaseBody, RenewBody, RenewManyBody,
    Renewed, lease_id_text,
};
use kunci_core::command::{Cancel, Command, ForceRelease, Release, Renew, Renewal, SetPolicy};
use kunci_core::reply::{CancelReply, ForceReleaseReply, Grant, ReleaseReply, Reply, SetPolicyReply, Told};
use kunci_replica::measures::{Histogram, Measures};
use kunci_replica::{Answered, ClusterId, NodeStatus, Position, Readings, Refusal, Replica};
use kunci_types::{Caller, Origin, RequestId, ResourceName};
use std::sync::Arc;

/// The calls that every front door offers. A clone is another handle to the same.
#[derive(Clone)]
pub struct Service {
    replica: Replica,
    counters: Arc<Counters>,
    audit: Option<Audit>,
}

/// An answer, and its place in the order that histories are checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped<T> {
    /// What the caller is told.
    pub body: T,
    /// Where it took effect.
    pub position: Position,
}

/// How a call ends.
pub type Outcome<T> = Result<Stamped<T>, Box<Refused>>;

impl Service {
    /// Stands before a replica.
    pub fn new(replica: Replica) -> Self {
        Self::audited(replica, None)
    }

    /// The same, with the audit log that the replica shows what it applies.
    pub fn audited(replica: Replica, audit: Option<Audit>) -> Self {
        Self { replica, counters: Arc::default(), audit }
    }

    /// This node's audit log, if it keeps one.
    pub(crate) fn audit(&self) -> Option<&Audit> {
        self.audit.as_ref()
    }

    /// The cluster.
    pub fn cluster_id(&self) -> ClusterId {
        self.replica.cluster_id()
    }

    /// The revision of this node's state.
    pub fn revision(&self) -> u64 {
        self.replica.local_view(|_| ()).revision.get()
    }

    /// Where this node's state stands.
    pub fn position(&self) -> Position {
        self.replica.local_view(|_| ()).position
    }

    /// How this node stands, as it knows by itself.
    pub fn status_of_node(&self) -> NodeStatus {
        self.replica.status()
    }

    /// How many calls wait on this node.
    pub fn waiting_calls(&self) -> usize {
        self.replica.waiting_calls()
    }

    /// What this node can say of itself in numbers.
    pub(crate) fn readings(&self) -> Readings {
        self.replica.readings()
    }

    /// What the replica has measured since the start.
    pub(crate) fn measures(&self) -> &Measures {
        self.replica.measures()
    }

    /// How long the disk took for parts of the log, in µs.
    pub(crate) fn syncs_took(&self) -> &Histogram {
        self.replica.syncs_took()
    }

    /// What has been counted since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Stamps a refusal that no log entry decided with what this node knows.
    pub fn refuse(&self, problem: impl Into<Problem>) -> Box<Refused> {
        self.refused_at(problem.into(), &self.replica.local_view(|_| ()))
    }

    fn refused_at<T>(&self, problem: Problem, at: &Answered<T>) -> Box<Refused> {
        self.counters.count_refusal(problem.code);
        self.counters.count_limit(&problem);
        Refused::new(problem, at)
    }

    async fn propose(&self, command: Command, origin: Origin) -> Result<Answered<Reply>, Box<Refused>> {
        let proposed = self.replica.propose_from(command, origin);
        let position =
            |answered: &Result<Answered<Reply>, _>| Some(answered.as_ref().ok()?.position.to_string());
        trace::commit(proposed, position).await.map_err(|refusal| self.undecided(refusal))
    }

    fn undecided(&self, refusal: Refusal) -> Box<Refused> {
        self.refuse(refusal::undecided(refusal))
    }

    /// A reply to something else than what was asked: a fault of this program, so its effect isn't known.
    fn astray<T>(&self, reply: &Answered<T>) -> Box<Refused> {
        tracing::error!(position = %reply.position, "the log answered another kind of command");
        self.refused_at(Problem::new(Code::OutcomeUnknown, "the answer can't be read; ask again"), reply)
    }

    /// Sets one lease back to its full time.
    ///
    /// # Errors
    /// When the lease isn't the caller's, has ended, or the node can't decide.
    pub async fn renew(&self, renewed: Renewed, origin: Origin) -> Outcome<RenewBody> {
        let answered = self.renew_all(vec![renewed], origin).await?;
        let Some(reply) = answered.value.first() else { return Err(self.astray(&answered)) };
        match answer::renewed(reply) {
            Ok((remaining_ms, is_final)) => Ok(Stamped {
                body: RenewBody {
                    renewed: true,
                    new_expires_at: wall_clock::in_ms(remaining_ms),
                    remaining_ms,
                    is_final,
                    revision: answered.revision.get(),
                },
                position: answered.position,
            }),
            Err(problem) => Err(self.refused_at(*problem, &answered)),
        }
    }

    /// Sets many leases back to their full time, each on its own account, in one log entry.
    ///
    /// # Errors
    /// When the node can't decide; a lease that isn't the caller's has its own result.
    pub async fn renew_many(&self, leases: Vec<Renewed>, origin: Origin) -> Outcome<RenewManyBody> {
        let names: Vec<ResourceName> = leases.iter().map(|lease| lease.resource.clone()).collect();
        let answered = self.renew_all(leases, origin).await?;
        let revision = answered.revision.get();
        let result = |(name, reply)| answer::renew_result(name, reply, revision);
        let results: Vec<_> = names.iter().zip(&answered.value).map(result).collect();
        for problem in results.iter().filter_map(|result| result.problem.as_ref()) {
            self.counters.count_refusal(problem.code);
        }
        Ok(Stamped { body: RenewManyBody { results, revision }, position: answered.position })
    }

    async fn renew_all(
        &self,
        leases: Vec<Renewed>,
        origin: Origin,
    ) -> Result<Answered<Vec<kunci_core::reply::RenewReply>>, Box<Refused>> {
        let count = leases.len();
        let leases = leases
            .into_iter()
            .map(|Renewed { resource, proof, ttl }| Renewal { resource, proof: core_proof(proof), ttl })
            .collect();
        let answered = self.propose(Command::Renew(Renew { leases }), origin).await?;
        match answered.value.clone() {
            Reply::Renew(replies) if replies.len() == count => Ok(answered.map(|_| replies)),
            _ => Err(self.astray(&answered)),
        }
    }

    /// Ends a lease by its holder's wish.
    ///
    /// # Errors
    /// When the lease isn't the caller's, ended otherwise, or the node can't decide.
    pub async fn release(
        &self,
        resource: ResourceName,
        proof: Proof,
        origin: Origin,
    ) -> Outcome<ReleaseBody> {
        let release = Release { resource, proof: core_proof(proof) };
        let answered = self.propose(Command::Release(release), origin).await?;
        match &answered.value {
            Reply::Release(ReleaseReply::Released(told)) => Ok(Stamped {
                body: ReleaseBody {
                    released: true,
                    already: *told == Told::Again,
                    revision: answered.revision.get(),
                },
                position: answered.position,
            }),
            Reply::Release(ReleaseReply::NotHolder(why)) => {
                Err(self.refused_at(not_released(refusal::not_holder(*why)), &answered))
            }
            _ => Err(self.astray(&answered)),
        }
    }

    /// Takes a request out of the queue, or makes sure that it never enters it. When its grant came first, the
    /// answer is that grant.
    ///
    /// # Errors
    /// When the request was granted and is over, or the node can't decide.
    pub async fn cancel(
        &self,
        resource: ResourceName,
        cancelled: Cancelled,
        origin: Origin,
    ) -> Outcome<Result<CancelBody, GrantBody>> {
        let Cancelled { owner, request_id } = cancelled;
        let cancel = Cancel { resource, caller: Caller::Unproven(owner), request_id: request_id.clone() };
        let answered = self.propose(Command::Cancel(cancel), origin).await?;
        let Reply::Cancel(reply) = answered.value else { return Err(self.astray(&answered)) };
        let body = match reply {
            CancelReply::Cancelled(told) => Ok(CancelBody {
                cancelled: true,
                repeated: told == Told::Again,
                revision: answered.revision.get(),
            }),
            CancelReply::Granted(grant) => Err(grant_body(&grant, &request_id, &answered)),
            CancelReply::LeaseEnded { how, token } => {
                return Err(self.refused_at(refusal::lease_ended(how, Some(token)), &answered));
            }
            CancelReply::RequestIdReused => {
                return Err(self.refused_at(refusal::request_id_reused(), &answered));
            }
            CancelReply::OverLimit(limit) => {
                return Err(self.refused_at(refusal::over_limit(limit), &answered));
            }
        };
        Ok(Stamped { body, position: answered.position })
    }

    /// Ends a lease by an operator's wish.
    ///
    /// # Errors
    /// When another lease or none is current, or the node can't decide.
    pub async fn force_release(
        &self,
        resource: ResourceName,
        forced: Forced,
        origin: Origin,
    ) -> Outcome<ForceReleaseBody> {
        let Forced { token, reason } = forced;
        let command = ForceRelease { resource: resource.clone(), token, reason: reason.clone() };
        let answered = self.propose(Command::ForceRelease(command), origin).await?;
        match &answered.value {
            Reply::ForceRelease(ForceReleaseReply::Forced { owner }) => {
                tracing::warn!(%resource, holder = %owner, %token, %reason, "a lease was ended by force");
                Ok(Stamped {
                    body: ForceReleaseBody {
                        released: true,
                        holder: owner.to_string(),
                        fencing_token: token.get(),
                        revision: answered.revision.get(),
                    },
                    position: answered.position,
                })
            }
            Reply::ForceRelease(ForceReleaseReply::OtherToken { held_by }) => {
                Err(self.refused_at(not_released(refusal::other_lease(token, held_by)), &answered))
            }
            Reply::ForceRelease(ForceReleaseReply::NotHeld) => {
                Err(self.refused_at(not_released(refusal::not_held(token)), &answered))
            }
            _ => Err(self.astray(&answered)),
        }
    }

    /// Changes the limits, where those that the change replaces are still in force.
    ///
    /// # Errors
    /// When others are in force, the new ones can't work, or the node can't decide.
    pub async fn change_policy(&self, change: &PolicyChangeRequest, origin: Origin) -> Outcome<PolicyAnswer> {
        let replaces = change.replaces().map_err(|invalid| self.refuse(invalid))?;
        let current = self.read(|table| (table.policy().clone(), table.policy_revision())).await?;
        if current.value.1 != replaces {
            return Err(self.refused_at(refusal::policy_changed(replaces, current.value.1), &current));
        }
        let policy = change.over(&current.value.0);
        let command = SetPolicy { replaces, policy: policy.clone() };
        let answered = self.propose(Command::SetPolicy(command), origin).await?;
        match &answered.value {
            Reply::SetPolicy(SetPolicyReply::Changed) => {
                tracing::info!(revision = %answered.revision, ?policy, "the policy was changed");
                Ok(Stamped {
                    body: PolicyAnswer {
                        policy: PolicyBody::from(&policy),
                        policy_revision: answered.revision.get(),
                        revision: answered.revision.get(),
                    },
                    position: answered.position,
                })
            }
            Reply::SetPolicy(SetPolicyReply::OtherRevision { current }) => {
                Err(self.refused_at(refusal::policy_changed(replaces, *current), &answered))
            }
            Reply::SetPolicy(SetPolicyReply::Invalid(invalid)) => {
                Err(self.refused_at(refusal::invalid_policy(invalid), &answered))
            }
            _ => Err(self.astray(&answered)),
        }
    }

    /// Counts and logs that a protected resource refused a stale token.
    pub fn report_fencing_rejection(&self, rejection: &FencingRejection) -> Stamped<FencingRejectionBody> {
        self.counters.rejections.take(rejection);
        let local = self.replica.local_view(|_| ());
        let body = FencingRejectionBody { recorded: true, revision: local.revision.get() };
        Stamped { body, position: local.position }
    }
}

fn not_released(problem: Problem) -> Problem {
    Problem { released: Some(false), ..problem }
}

fn core_proof(proof: Proof) -> kunci_core::command::Proof {
    match proof {
        Proof::LeaseId(lease_id) => kunci_core::command::Proof::LeaseId(lease_id),
        Proof::OwnerToken { owner, token } => {
            kunci_core::command::Proof::OwnerToken { caller: Caller::Unproven(owner.clone()), owner, token }
        }
    }
}

fn grant_body<T>(grant: &Grant, request_id: &RequestId, at: &Answered<T>) -> GrantBody {
    GrantBody {
        acquired: true,
        lease_id: lease_id_text(&grant.lease_id),
        fencing_token: grant.token.get(),
        expires_at: wall_clock::in_ms(grant.remaining_ms),
        remaining_ms: grant.remaining_ms,
        request_id: request_id.to_string(),
        repeated: grant.told == Told::Again,
        revision: at.revision.get(),
    }
}
