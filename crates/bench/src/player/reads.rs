//! Status requests about resources that the clients hold.

use super::{Player, noted};
use crate::book::{Book, Kind};
use crate::caller::{Caller, Failed};
use kunci_client::{HeldLock, Moment, ResourceName};
use std::sync::Arc;

/// Holds one lock, which its `kunci-client` renews, and reads everybody's in turn.
pub(crate) struct Reads {
    caller: Caller,
    keys: Arc<[ResourceName]>,
    /// Its own among them.
    own: usize,
    /// The one to read next.
    next: usize,
    lock: Option<HeldLock>,
}

impl Reads {
    pub(crate) fn new(caller: Caller, keys: Arc<[ResourceName]>, own: usize) -> Self {
        Self { caller, keys, own, next: own, lock: None }
    }
}

impl Player for Reads {
    async fn prepare(&mut self) -> Result<(), Failed> {
        let request = self.caller.client().lock(self.keys[self.own].as_str()).ttl(self.caller.common.ttl);
        self.lock = Some(request.try_acquire().await.map_err(|error| Failed::from(&error))?);
        Ok(())
    }

    async fn turn(&mut self, book: &Book, start: Moment) -> Result<(), Failed> {
        self.next = (self.next + 1) % self.keys.len();
        noted(book, Kind::Status, start, self.caller.status(&self.keys[self.next]).await)
    }

    async fn give_back(self) -> u64 {
        match self.lock {
            Some(lock) => u64::from(lock.release().await.is_err()),
            None => 0,
        }
    }
}
