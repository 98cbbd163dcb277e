//! The requests of one client.
//!
//! Owns: what a request is made of, and what is known of one that failed. Never: measures, or decides what comes next.

use crate::book::FailureCode;
use crate::door::{Acquire, Door};
use kunci_client::native::WaitFor;
use kunci_client::{Clock, Randomness, ResourceName};
use kunci_types::{LeaseId, Owner, RequestId, Ttl};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What all clients of one bench share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) randomness: Arc<dyn Randomness>,
    /// Whose the locks are.
    pub(crate) owner: Owner,
    /// What every name begins with, the `/` at its end included.
    pub(crate) prefix: String,
    pub(crate) ttl: Duration,
    /// Somebody wants it to end early.
    pub(crate) stop: CancellationToken,
}

/// A lock that a client of the bench holds.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) key: ResourceName,
    lease_id: LeaseId,
}

/// A request that didn't do what it was sent for.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) code: FailureCode,
    pub(crate) known: Known,
    /// For people.
    pub(crate) detail: String,
}

/// What is known of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// A server has decided against it.
    Decided,
    /// Nobody decided, and it didn't happen.
    NotApplied,
    /// It may have happened, or still may.
    Nothing,
}

/// One client of a bench.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    door: Door,
    pub(crate) common: Arc<Common>,
}

impl Caller {
    pub(crate) fn new(door: Door, common: Arc<Common>) -> Self {
        Self { door, common }
    }

    /// A name of this bench's own.
    pub(crate) fn key(&self, name: impl std::fmt::Display) -> Result<ResourceName, Failed> {
        ResourceName::parse(&format!("{}{name}", self.common.prefix))
            .map_err(|error| Failed::here(error.to_string()))
    }

    /// 128 fresh random bits.
    pub(crate) fn request_id(&self) -> Result<RequestId, Failed> {
        let text = hex::<16>(&*self.common.randomness).map_err(|error| Failed::here(error.to_string()))?;
        RequestId::parse(&text).map_err(|error| Failed::here(error.to_string()))
    }

    /// Takes a resource under `request_id`. Dropped, or failed without certainty: see [`Caller::take_back`].
    pub(crate) async fn acquire(
        &self,
        key: &ResourceName,
        request_id: &RequestId,
        wait: WaitFor,
    ) -> Result<Held, Failed> {
        let ttl = Ttl::from_ms(u64::try_from(self.common.ttl.as_millis()).unwrap_or(u64::MAX));
        let acquire = Acquire { key, request_id, owner: &self.common.owner, ttl, wait };
        let lease_id = self.door.acquire(&acquire).await?;
        Ok(Held { key: key.clone(), lease_id })
    }

    /// Takes a resource that is free, and leaves no request behind when that fails.
    pub(crate) async fn acquire_free(&self, key: &ResourceName) -> Result<Held, Failed> {
        let request_id = self.request_id()?;
        let acquired = self.acquire(key, &request_id, WaitFor::Once).await;
        if acquired.as_ref().is_err_and(Failed::may_have_happened) {
            // What can't be taken back runs out with its lease.
            let _ = self.take_back(key, &request_id).await;
        }
        acquired
    }

    /// Cancels a request whose outcome isn't known or not wanted any more, and releases what it was granted.
    pub(crate) async fn take_back(&self, key: &ResourceName, request_id: &RequestId) -> Result<(), Failed> {
        match self.door.cancel(key, request_id, &self.common.owner).await? {
            Some(lease_id) => self.door.release(key, lease_id).await,
            None => Ok(()),
        }
    }

    pub(crate) async fn renew(&self, held: &Held) -> Result<(), Failed> {
        self.door.renew(&held.key, held.lease_id).await
    }

    pub(crate) async fn release(&self, held: &Held) -> Result<(), Failed> {
        self.door.release(&held.key, held.lease_id).await
    }

    /// Gives back what is held, if anything is; returns how many locks couldn't be.
    pub(crate) async fn give_back(&self, held: Option<Held>) -> u64 {
        match held {
            Some(held) => u64::from(self.release(&held).await.is_err_and(|failed| failed.is_undecided())),
            None => 0,
        }
    }

    pub(crate) async fn status(&self, key: &ResourceName) -> Result<(), Failed> {
        self.door.status(key).await
    }
}

impl Failed {
    /// Whether what was asked for may be so.
    pub(crate) fn may_have_happened(&self) -> bool {
        self.known == Known::Nothing
    }

    /// Whether the same may still be asked: of a lease, that it may not be over.
    pub(crate) fn is_undecided(&self) -> bool {
        self.known != Known::Decided
    }

    /// This side's own fault; nothing was sent.
    pub(crate) fn here(detail: String) -> Self {
        Self { code: "not_sent", known: Known::NotApplied, detail }
    }

    /// The same, of a request of which an earlier try may have happened.
    pub(crate) fn unknown(self) -> Self {
        Self { known: Known::Nothing, ..self }
    }
}

/// So many random bytes, in hexadecimal.
pub(crate) fn hex<const BYTES: usize>(randomness: &dyn Randomness) -> std::io::Result<String> {
    let mut bytes = [0_u8; BYTES];
    randomness.fill(&mut bytes)?;
    let mut text = String::with_capacity(BYTES * 2);
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    text.extend(digits.filter_map(|digit| char::from_digit(digit.into(), 16)));
    Ok(text)
}
