//! One open call of an acquire: it may wait, and it may go away before its answer.
//!
//! Owns: what becomes of a request whose call goes away: its waiter is detached, and a grant that nobody saw is
//! abandoned after the waiter grace. Never: abandons a grant whose answer was handed out.

use crate::answered::{Answered, Refusal};
use crate::replica::Replica;
use crate::term::Phase;
use crate::waiting_room::AcquireAnswer;
use kunci_core::RequestKey;
use kunci_core::command::{Abandon, Acquire, Command, Departure, Detach};
use kunci_core::reply::{AcquireReply, DetachReply, Reply};
use kunci_process::{sleep, timeout};
use kunci_types::{Attempt, Origin, Wait};
use std::time::Duration;
use tokio::sync::oneshot;

/// A try-once that sat in the node longer than this before it was proposed is refused.
const TRY_WITHIN: Duration = Duration::from_secs(2);
/// How long an overloaded node is left alone before it is asked again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// An acquire whose answer is still to be handed out. Dropping it says that the client has gone away.
pub struct Call {
    parts: Option<Parts>,
}

/// How a call ends, or goes on elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The request's answer; never [`AcquireReply::Queued`].
    Final(Answered<AcquireReply>),
    /// The request still waits, at this place from 1. The waiter is detached: the client has the waiter grace to
    /// call again with the same request id.
    StillQueued(Answered<u64>),
}

struct Parts {
    replica: Replica,
    request: RequestKey,
    attempt: Attempt,
    stage: Stage,
    answer: oneshot::Receiver<AcquireAnswer>,
}

enum Stage {
    /// The reply of the acquire itself is outstanding.
    Proposed(oneshot::Receiver<Result<Answered<Reply>, Refusal>>),
    /// The request is in the queue.
    Queued,
    /// The request was granted to this call.
    Granted,
    /// Nothing is left to be done for it.
    Over,
}

impl Replica {
    /// Opens a call: proposes the acquire and stands by for its answer.
    ///
    /// # Errors
    /// When nothing was proposed.
    pub async fn acquire(&self, acquire: Acquire) -> Result<Call, Refusal> {
        self.acquire_from(acquire, Origin::UNKNOWN).await
    }

    /// The same of an acquire that came from `origin`; the audit log says so.
    ///
    /// # Errors
    /// As [`Replica::acquire`].
    pub async fn acquire_from(&self, acquire: Acquire, origin: Origin) -> Result<Call, Refusal> {
        let request = RequestKey::new(&acquire.caller, &acquire.request_id);
        let attempt = acquire.attempt;
        let patience = match acquire.wait {
            Wait::Try => TRY_WITHIN,
            Wait::UpToMs(ms) => Duration::from_millis(ms),
        };
        // An absurd wait is the policy's to refuse; here it only must not overflow.
        let too_late = kunci_process::now().checked_add(patience);
        // Registered before it is proposed: the answer can't come too early.
        let answer = self.room().enter(attempt);
        let reply = match self.submit(Command::Acquire(acquire), origin, too_late) {
            Ok(reply) => reply,
            Err(refusal) => {
                self.room().leave(attempt);
                return Err(refusal);
            }
        };
        let stage = Stage::Proposed(reply);
        Ok(Call { parts: Some(Parts { replica: self.clone(), request, attempt, stage, answer }) })
    }
}

impl Call {
    /// Waits until the log has taken the request up: its answer, or `None` when it is in the queue from now on.
    ///
    /// Safe to drop while it waits, as [`Call::answer`].
    ///
    /// # Errors
    /// As [`Call::answer`].
    pub async fn decided(&mut self) -> Result<Option<CallOutcome>, Refusal> {
        let parts = self.parts.as_mut().ok_or(Refusal::OutcomeUnknown)?;
        let Stage::Proposed(reply) = &mut parts.stage else { return Ok(None) };
        let reply = reply.await.unwrap_or(Err(Refusal::OutcomeUnknown));
        parts.after_reply(reply)
    }

    /// Waits for the answer, in the queue for at most `hold`.
    ///
    /// Safe to drop while it waits, with the call: that says that the client has gone away.
    ///
    /// # Errors
    /// When this node can't tell the outcome; asking again with the same request id can.
    pub async fn answer(&mut self, hold: Duration) -> Result<CallOutcome, Refusal> {
        if let Some(outcome) = self.decided().await? {
            return Ok(outcome);
        }
        let parts = self.parts.as_mut().ok_or(Refusal::OutcomeUnknown)?;
        match timeout(hold, &mut parts.answer).await {
            Ok(answer) => parts.finish(answer.unwrap_or(Err(Refusal::OutcomeUnknown))),
            Err(_) => parts.send_away().await,
        }
    }

    /// Says that the answer was handed to the client's connection: from now on its grant is never abandoned.
    pub fn delivered(mut self) {
        if let Some(mut parts) = self.parts.take() {
            parts.stage = Stage::Over;
            parts.replica.room().leave(parts.attempt);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let Some(parts) = self.parts.take() else { return };
        match (&parts.stage, tokio::runtime::Handle::try_current()) {
            (Stage::Over, _) | (_, Err(_)) => parts.replica.room().leave(parts.attempt),
            (Stage::Proposed(_) | Stage::Queued | Stage::Granted, Ok(_)) => {
                drop(kunci_process::spawn(parts.gone()));
            }
        }
    }
}

impl Parts {
    fn after_reply(
        &mut self,
        reply: Result<Answered<Reply>, Refusal>,
    ) -> Result<Option<CallOutcome>, Refusal> {
        let answered = reply.inspect_err(|_| self.stage = Stage::Over)?;
        match answered.value.clone() {
            Reply::Acquire(AcquireReply::Queued) => {
                self.stage = Stage::Queued;
                Ok(None)
            }
            Reply::Acquire(decided) => self.finish(Ok(answered.map(|_| decided))).map(Some),
            _ => Err(Refusal::OutcomeUnknown),
        }
    }

    fn finish(&mut self, answer: AcquireAnswer) -> Result<CallOutcome, Refusal> {
        self.stage = match &answer {
            Ok(Answered { value: AcquireReply::Granted(_), .. }) => Stage::Granted,
            Ok(_) | Err(_) => Stage::Over,
        };
        answer.map(CallOutcome::Final)
    }

    /// The call was held open long enough: the client is told to come back, and its waiter is detached.
    async fn send_away(&mut self) -> Result<CallOutcome, Refusal> {
        let detached = self.detach(Departure::Told).await;
        match detached {
            Ok(Answered { value: Reply::Detach(DetachReply::Detached { position }), .. }) => {
                self.stage = Stage::Over;
                detached.map(|answered| CallOutcome::StillQueued(answered.map(|_| position)))
            }
            Ok(Answered { value: Reply::Detach(DetachReply::Granted(grant)), .. }) => {
                self.finish(detached.map(|answered| answered.map(|_| AcquireReply::Granted(grant))))
            }
            // Another end came first, and its answer is on the way or here.
            Ok(_) => {
                let answer = timeout(TRY_WITHIN, &mut self.answer).await;
                self.finish(answer.ok().and_then(Result::ok).unwrap_or(Err(Refusal::OutcomeUnknown)))
            }
            // The request itself was proposed long ago.
            Err(_) => {
                self.stage = Stage::Over;
                Err(Refusal::OutcomeUnknown)
            }
        }
    }

    async fn detach(&self, departure: Departure) -> Result<Answered<Reply>, Refusal> {
        let detach = Detach { request: self.request.clone(), attempt: self.attempt, departure };
        self.propose_surely(Command::Detach(detach)).await
    }

    /// Proposes again while the node is overloaded, or tries to give leadership away and may fail to: what a call
    /// leaves behind must not be forgotten. Once this node doesn't lead any more, it is the next leader's.
    async fn propose_surely(&self, command: Command) -> Result<Answered<Reply>, Refusal> {
        loop {
            let decided = self.replica.propose(command.clone()).await;
            let stays = || self.replica.seat.term.phase() != Phase::Away;
            match decided {
                Err(Refusal::Overloaded) => sleep(AGAIN_AFTER).await,
                Err(Refusal::NoLeader) if stays() => sleep(AGAIN_AFTER).await,
                decided => return decided,
            }
        }
    }

    /// The client has gone away without its answer.
    async fn gone(mut self) {
        if let Stage::Proposed(reply) = &mut self.stage {
            let reply = reply.await.unwrap_or(Err(Refusal::OutcomeUnknown));
            // What it was told doesn't matter any more, only what stage it left behind.
            drop(self.after_reply(reply));
        }
        if let Stage::Queued = self.stage {
            self.leave_queue().await;
        }
        self.replica.room().leave(self.attempt);
        if let Stage::Granted = self.stage {
            self.abandon().await;
        }
    }

    async fn leave_queue(&mut self) {
        let granted = match self.detach(Departure::Lost).await {
            Ok(Answered { value: Reply::Detach(DetachReply::Granted(_)), .. }) => true,
            // A node that doesn't lead any more leaves it to the next leader, which counts who comes back.
            Ok(_) | Err(_) => false,
        };
        self.stage = if granted { Stage::Granted } else { Stage::Over };
    }

    /// Ends the grant that nobody saw, unless somebody comes for it within the waiter grace. Core refuses it
    /// once the request has been heard of again, or in a later term.
    async fn abandon(self) {
        let grace_ms = self.replica.waiter_grace_ms();
        sleep(Duration::from_millis(grace_ms)).await;
        let abandon = Abandon { request: self.request.clone(), attempt: self.attempt };
        drop(self.propose_surely(Command::Abandon(abandon)).await);
    }
}
