//! What the keeper knows of a lease, where its holder can see it.
//!
//! Owns: publishing. Never: decides; the facts are the renewer's.

use crate::clock::Clock;
use crate::state::{Facts, Loss, State};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// One lease as the keeper last knew it. What time alone changes is read from the clock, at each question.
#[derive(Debug)]
pub(crate) struct Shared {
    clock: Arc<dyn Clock>,
    facts: watch::Sender<Facts>,
    /// Cancelled when the lock isn't held any more, for whatever reason.
    over: CancellationToken,
}

impl Shared {
    pub(crate) fn new(clock: Arc<dyn Clock>, facts: Facts) -> Self {
        Self { clock, facts: watch::Sender::new(facts), over: CancellationToken::new() }
    }

    pub(crate) fn publish(&self, facts: Facts) {
        self.facts.send_replace(facts);
        if facts.lost.is_some() {
            self.over.cancel();
        }
    }

    /// The lock is given back.
    pub(crate) fn end(&self) {
        self.over.cancel();
    }

    pub(crate) fn over(&self) -> &CancellationToken {
        &self.over
    }

    pub(crate) fn state(&self) -> State {
        self.facts.borrow().state_at(self.clock.now())
    }

    pub(crate) fn loss(&self) -> Option<Loss> {
        self.facts.borrow().loss_at(self.clock.now())
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.facts.borrow().remaining_at(self.clock.now())
    }

    pub(crate) fn is_final(&self) -> bool {
        self.facts.borrow().is_final
    }

    pub(crate) fn changes(&self) -> watch::Receiver<Facts> {
        self.facts.subscribe()
    }
}
