//! Acquire and release, each client on a resource of its own.

use super::{Player, noted};
use crate::book::{Book, Kind};
use crate::caller::{Caller, Failed, Held};
use kunci_client::{Moment, ResourceName};

/// Has its resource, or not: each turn changes that.
pub(crate) struct AcquireRelease {
    caller: Caller,
    key: ResourceName,
    held: Option<Held>,
}

impl AcquireRelease {
    pub(crate) fn new(caller: Caller, number: u32) -> Result<Self, Failed> {
        Ok(Self { key: caller.key(number)?, caller, held: None })
    }
}

impl Player for AcquireRelease {
    async fn turn(&mut self, book: &Book, start: Moment) -> Result<(), Failed> {
        let Some(held) = &self.held else {
            let acquired = self.caller.acquire_free(&self.key).await;
            self.held = Some(noted(book, Kind::Acquire, start, acquired)?);
            return Ok(());
        };
        let released = noted(book, Kind::Release, start, self.caller.release(held).await);
        // What isn't known to be over is released again.
        if !released.as_ref().is_err_and(Failed::is_undecided) {
            self.held = None;
        }
        released
    }

    async fn give_back(self) -> u64 {
        self.caller.give_back(self.held).await
    }
}
