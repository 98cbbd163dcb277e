//! An acquire as a front door sees it: opened, answered, delivered.

use super::{Outcome, Refused, Service, Stamped, draw, grant_body, refusal};
use crate::trace;
use kunci_api::{Applied, Asked, Code, GrantBody, Problem, QueuedBody};
use kunci_core::command::{Acquire, RequestIdFrom};
use kunci_core::reply::AcquireReply;
use kunci_replica::{Call, CallOutcome};
use kunci_types::{Caller, Origin, RequestId, ResourceName};
use std::time::Duration;

/// An acquire whose answer is still to be handed out. Dropping it says that the client has gone away: its waiter
/// is detached, and a grant that nobody saw is abandoned after the waiter grace.
pub struct OpenCall {
    service: Service,
    call: Call,
    request_id: RequestId,
}

/// How an acquire ends well, or goes on in another call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireAnswer {
    /// The resource is the caller's.
    Granted(GrantBody),
    /// The request still waits; the caller is asked to call again.
    Queued(QueuedBody),
}

impl Service {
    /// Opens a call: proposes the acquire and stands by for its answer. An acquire without a request id gets
    /// `drawn_id`, when another node has drawn one for it, or one that is drawn here.
    ///
    /// # Errors
    /// When nothing was proposed.
    pub async fn acquire(
        &self,
        resource: ResourceName,
        asked: Asked,
        drawn_id: Option<RequestId>,
        origin: Origin,
    ) -> Result<OpenCall, Box<Refused>> {
        let Asked { owner, request_id, ttl, wait, lock_delay, metadata } = asked;
        let drawn = draw::draw().map_err(|error| {
            tracing::error!(%error, "the system gives no randomness for a lease id");
            self.refuse(Problem::new(
                Code::Overloaded,
                "this node has no randomness for a lease id right now",
            ))
        })?;
        let request_id_from =
            if request_id.is_some() { RequestIdFrom::Client } else { RequestIdFrom::Server };
        let request_id = request_id.or(drawn_id).unwrap_or_else(|| drawn.request_id());
        let acquire = Acquire {
            resource,
            caller: Caller::Unproven(owner.clone()),
            owner,
            request_id: request_id.clone(),
            request_id_from,
            ttl,
            wait,
            lock_delay,
            metadata,
            lease_id: drawn.lease_id,
            attempt: drawn.attempt,
        };
        match self.replica.acquire_from(acquire, origin).await {
            Ok(call) => Ok(OpenCall { service: self.clone(), call, request_id }),
            Err(refusal) => Err(self.refuse(not_acquired(refusal::undecided(refusal), &request_id))),
        }
    }
}

impl OpenCall {
    /// Waits until the log has taken the request up: its answer, or `None` when it is in the queue from now on. May be
    /// dropped while it waits.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub async fn decided(&mut self) -> Result<Option<Stamped<AcquireAnswer>>, Box<Refused>> {
        // Where it took effect is told by its answer; in the queue it has no answer yet.
        match trace::commit(self.call.decided(), |_| None).await {
            Ok(None) => Ok(None),
            Ok(Some(outcome)) => self.told(outcome).map(Some),
            Err(refusal) => Err(self.unknown(refusal::undecided(refusal))),
        }
    }

    /// Waits for the answer, in the queue for at most `hold`. May be dropped while it waits.
    ///
    /// # Errors
    /// When the log refuses the acquire, or the node can't tell the outcome.
    pub async fn answer(&mut self, hold: Duration) -> Outcome<AcquireAnswer> {
        match trace::wait(self.call.answer(hold)).await {
            Ok(outcome) => self.told(outcome),
            Err(refusal) => Err(self.unknown(refusal::undecided(refusal))),
        }
    }

    fn told(&self, outcome: CallOutcome) -> Outcome<AcquireAnswer> {
        let answered = match outcome {
            CallOutcome::Final(answered) => answered,
            CallOutcome::StillQueued(answered) => {
                let queued = QueuedBody {
                    acquired: false,
                    queued: true,
                    position: answered.value,
                    request_id: self.request_id.to_string(),
                    revision: answered.revision.get(),
                };
                return Ok(Stamped { body: AcquireAnswer::Queued(queued), position: answered.position });
            }
        };
        match &answered.value {
            AcquireReply::Granted(grant) => {
                let body = grant_body(grant, &self.request_id, &answered);
                Ok(Stamped { body: AcquireAnswer::Granted(body), position: answered.position })
            }
            AcquireReply::Refused(refused) => {
                let problem = not_acquired(refusal::acquire(refused), &self.request_id);
                Err(self.service.refused_at(problem, &answered))
            }
            AcquireReply::Queued => Err(self.service.astray(&answered)),
        }
    }

    /// The refusal for a caller whose call ends before its answer: the same request id finds it out.
    pub fn ended_early(&self) -> Box<Refused> {
        self.unknown(Problem::new(
            Code::OutcomeUnknown,
            "this node is stopping: ask again with the same request id, also at another node",
        ))
    }

    /// Says that the answer was handed to the client's connection: from now on its grant is never taken back.
    pub fn delivered(self) {
        self.call.delivered();
    }

    fn unknown(&self, problem: Problem) -> Box<Refused> {
        self.service.refuse(not_acquired(problem, &self.request_id))
    }
}

fn not_acquired(problem: Problem, request_id: &RequestId) -> Problem {
    let acquired = (problem.applied == Applied::No).then_some(false);
    Problem { acquired, request_id: Some(request_id.to_string()), ..problem }
}
