//! A lock as everybody may see it.

use crate::error::Error;
use crate::links::Links;
use crate::release::insist;
use kunci_api::native::{Outcome, Request};
use kunci_types::{FencingToken, ResourceName};
use std::time::Duration;

/// Whether a resource is held, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nobody holds it.
    Free {
        /// For how long a lock-delay keeps it closed.
        lock_delay: Option<Duration>,
        /// How many wait: for the lock-delay, or detached.
        queue_length: u64,
    },
    /// Somebody holds it.
    Held {
        /// The owner of the current lease.
        holder: String,
        /// Its fencing token.
        token: FencingToken,
        /// How long the lease lasts if it isn't renewed.
        remaining: Duration,
        /// How many wait.
        queue_length: u64,
    },
}

pub(crate) async fn read(links: &Links, resource: &str) -> Result<Status, Error> {
    let key = ResourceName::parse(resource).map_err(|error| Error::invalid(error.to_string()))?;
    match insist(links, &Request::Status { key }).await? {
        Outcome::Status(status) if status.held => Ok(Status::Held {
            holder: status.holder.ok_or_else(Error::astray)?,
            token: status
                .token
                .and_then(|token| FencingToken::presented(token).ok())
                .ok_or_else(Error::astray)?,
            remaining: Duration::from_millis(status.ttl_ms.unwrap_or_default()),
            queue_length: status.queue,
        }),
        Outcome::Status(status) => Ok(Status::Free {
            lock_delay: status.delay_ms.map(Duration::from_millis),
            queue_length: status.queue,
        }),
        Outcome::Error(refused) => Err(Error::refused(&refused)),
        _ => Err(Error::astray()),
    }
}
