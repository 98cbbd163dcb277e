//! Status requests about resources that the clients hold.

use super::{Player, noted};
use crate::book::{Book, Kind};
use crate::caller::{Caller, Failed, Held};
use kunci_client::{Moment, ResourceName};
use std::sync::Arc;

/// Holds one lock, which it renews without counting that, and reads everybody's in turn.
pub(crate) struct Reads {
    caller: Caller,
    keys: Arc<[ResourceName]>,
    /// Its own among them.
    own: usize,
    /// The one to read next.
    next: usize,
    held: Option<Held>,
    renewed_at: Moment,
}

impl Reads {
    pub(crate) fn new(caller: Caller, keys: Arc<[ResourceName]>, own: usize) -> Self {
        let renewed_at = caller.common.clock.now();
        Self { caller, keys, own, next: own, held: None, renewed_at }
    }

    /// Renews its lock in time. Where that fails the next status says what there is to say.
    async fn keep(&mut self) {
        let now = self.caller.common.clock.now();
        if let Some(held) = &self.held
            && now.since(self.renewed_at) >= self.caller.common.ttl / 3
        {
            let _ = self.caller.renew(held).await;
            self.renewed_at = now;
        }
    }
}

impl Player for Reads {
    async fn prepare(&mut self) -> Result<(), Failed> {
        self.renewed_at = self.caller.common.clock.now();
        self.held = Some(self.caller.acquire_free(&self.keys[self.own]).await?);
        Ok(())
    }

    async fn turn(&mut self, book: &Book, start: Moment) -> Result<(), Failed> {
        self.next = (self.next + 1) % self.keys.len();
        let read = noted(book, Kind::Status, start, self.caller.status(&self.keys[self.next]).await);
        self.keep().await;
        read
    }

    async fn give_back(self) -> u64 {
        self.caller.give_back(self.held).await
    }
}
