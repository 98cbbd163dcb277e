//! Who waits for which answer on this node.
//!
//! Owns: the way from an applied answer to the call that waits for it. An attempt is registered before it is
//! proposed, so that no answer can come too early. Never: decides who is served.

use crate::answered::{Answered, Refusal};
use kunci_core::reply::{AcquireReply, Answer};
use kunci_types::{Attempt, ClusterTime};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

pub(crate) type AcquireAnswer = Result<Answered<AcquireReply>, Refusal>;

/// The waiting calls of this node.
#[derive(Debug, Default)]
pub(crate) struct WaitingRoom {
    calls: Mutex<HashMap<Attempt, oneshot::Sender<AcquireAnswer>>>,
}

impl WaitingRoom {
    pub(crate) fn enter(&self, attempt: Attempt) -> oneshot::Receiver<AcquireAnswer> {
        let (sender, receiver) = oneshot::channel();
        self.calls().insert(attempt, sender);
        receiver
    }

    pub(crate) fn leave(&self, attempt: Attempt) {
        self.calls().remove(&attempt);
    }

    /// Gives answers to the calls that wait for them here.
    pub(crate) fn answer(&self, index: u64, now: ClusterTime, answers: Vec<Answer>) {
        if answers.is_empty() {
            return;
        }
        let mut calls = self.calls();
        for Answer { attempt, reply } in answers {
            let Some(call) = calls.remove(&attempt) else { continue };
            // A call that has just gone away finds its answer itself (see `call`).
            drop(call.send(Ok(Answered::placed(index, now, reply))));
        }
    }

    /// Ends every waiting call: this node can't answer them any more, and another one can.
    pub(crate) fn end_all(&self) {
        for (_, call) in self.calls().drain() {
            drop(call.send(Err(Refusal::OutcomeUnknown)));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.calls().len()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<Attempt, oneshot::Sender<AcquireAnswer>>> {
        // The map is whole between any two of its operations.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
