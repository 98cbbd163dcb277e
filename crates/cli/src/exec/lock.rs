//! The lock that a command runs under, through whichever door it is held.
//!
//! Owns: what the supervisor sees of it, and giving it back. Never: decides what a loss means for the command.

use super::keeper::Facts;
use super::renewing::Renewing;
use crate::output::Output;
use kunci_api::lease_id_text;
use kunci_client::{
    BootClock, Client, Clock as _, ErrorKind, HeldLock, InDoubt, Loss, Moment, State, States,
};
use std::time::Duration;
use tokio::time::timeout;

/// What the person should hear about renewals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// They begin to fail, because of this.
    Failing(String),
    /// They work again.
    Safe,
}

/// A lock that is held.
pub(super) struct Lock {
    resource: String,
    token: u64,
    way: Way,
}

enum Way {
    Http(Box<Renewing>),
    Native(Box<Kept>),
}

/// A lock that `kunci_client` keeps, and what was known of it last.
struct Kept {
    lock: HeldLock,
    states: States,
    was: State,
    deadline: Moment,
    client: Client,
}

impl Lock {
    /// One that is renewed over HTTP.
    pub(super) fn http(token: u64, renewing: Renewing) -> Self {
        Self { resource: renewing.lease().resource.clone(), token, way: Way::Http(Box::new(renewing)) }
    }

    /// One that its client renews.
    pub(super) fn native(client: Client, lock: HeldLock) -> Self {
        let deadline = BootClock.now().plus(lock.remaining());
        let (resource, token) = (lock.resource().to_string(), lock.token().get());
        let states = lock.states();
        let kept = Kept { lock, states, was: State::Held, deadline, client };
        Self { resource, token, way: Way::Native(Box::new(kept)) }
    }

    /// What is locked.
    pub(super) fn resource(&self) -> &str {
        &self.resource
    }

    /// The fencing token.
    pub(super) fn token(&self) -> u64 {
        self.token
    }

    /// The lease id, a secret.
    pub(super) fn lease_id(&self) -> String {
        match &self.way {
            Way::Http(renewing) => renewing.lease().lease_id.clone(),
            Way::Native(kept) => lease_id_text(&kept.lock.lease_id()),
        }
    }

    /// What is known of it now.
    pub(super) fn facts(&mut self) -> Facts {
        match &mut self.way {
            Way::Http(renewing) => renewing.facts(),
            Way::Native(kept) => kept.facts(),
        }
    }

    /// Returns when something else may be known of it. May be dropped and called again.
    pub(super) async fn changed(&mut self) -> Option<News> {
        match &mut self.way {
            Way::Http(renewing) => renewing.changed().await,
            Way::Native(kept) => kept.changed().await,
        }
    }

    /// Gives it back, trying again for up to `at_most`; says what went wrong when nobody heard.
    pub(super) async fn give_back(self, at_most: Duration, output: &Output) {
        let released = match self.way {
            Way::Http(renewing) => renewing.lease().release(at_most).await,
            Way::Native(kept) => kept.release(at_most).await,
        };
        if let Err(why) = released {
            output.say(&format!("release {}: {why}; its lease ends by itself", self.resource));
        }
    }

    /// Leaves it to its TTL: something may still run under it.
    pub(super) fn leave(self) {
        if let Way::Native(kept) = self.way {
            // Dropped, it would be released.
            std::mem::forget(kept.lock);
        }
    }
}

impl Kept {
    fn facts(&mut self) -> Facts {
        // Read before the lock is asked: what is counted from here can only be too early.
        let now = BootClock.now();
        let mut ended = None;
        match self.lock.check() {
            Err(InDoubt::Lost(Loss::Ended(ending))) => ended = Some(ending.to_string()),
            Err(InDoubt::Lost(_)) => self.deadline = self.deadline.min(now),
            Ok(()) | Err(InDoubt::Uncertain { .. }) => self.deadline = now.plus(self.lock.remaining()),
        }
        Facts { deadline: self.deadline, is_final: self.lock.is_final(), ended }
    }

    async fn changed(&mut self) -> Option<News> {
        // After a loss nothing more happens to it.
        let Some(state) = self.states.next().await else { return std::future::pending().await };
        let was = std::mem::replace(&mut self.was, state);
        match (was, state) {
            (State::Held, State::Uncertain) => Some(News::Failing("no answer yet".to_owned())),
            (State::Uncertain, State::Held) => Some(News::Safe),
            _ => None,
        }
    }

    async fn release(self, at_most: Duration) -> Result<(), String> {
        let giving_back = async {
            let released = self.lock.release().await;
            // After a loss, which was told already, it is tried in the background.
            self.client.close().await;
            released.or_else(|error| match error.kind() {
                ErrorKind::Lost(_) => Ok(()),
                _ => Err(error.to_string()),
            })
        };
        timeout(at_most, giving_back).await.unwrap_or_else(|_| Err(format!("no answer within {at_most:?}")))
    }
}
