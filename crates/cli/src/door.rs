//! The two ways to a cluster: its native protocol through `kunci_client`, and HTTP.
//!
//! Owns: one request that either can carry, and one form of answer to it. Never: repeats a request; see `patience`.

mod choice;
mod form;
mod native;

pub(crate) use choice::{Doors, ENDPOINTS, Needs, Source, URL};
pub(crate) use form::answer_to_error;
pub(crate) use native::Native;

use crate::answer::Answer;
use crate::client::{Call, CallError, Client};
use crate::url::lock_path;
use serde_json::Value;
use std::time::Duration;

/// One way to a cluster.
#[derive(Clone, Debug)]
pub(crate) enum Door {
    /// Through one node's HTTP.
    Http(Client),
    /// Through native doors.
    Native(Native),
}

/// What is asked about one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Take it, or queue for it.
    Acquire,
    /// Give a lease its time again.
    Renew,
    /// End a lease.
    Release,
    /// Leave the queue.
    Cancel,
    /// How it stands.
    Status,
}

/// A request that both doors can carry: the fields are those of HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// What is asked.
    pub(crate) verb: Verb,
    /// About which resource.
    pub(crate) resource: String,
    /// With which fields; nothing for a status.
    pub(crate) body: Value,
    /// How long HTTP may take to answer; the native client knows by itself when a connection is dead.
    pub(crate) answer_within: Duration,
}

impl Ask {
    /// A request that is answered as soon as it is decided.
    pub(crate) fn new(verb: Verb, resource: &str, body: Value) -> Self {
        Self { verb, resource: resource.to_owned(), body, answer_within: Duration::from_secs(5) }
    }

    fn call(&self) -> Call {
        let path = |rest| lock_path(&self.resource, rest);
        let call = match self.verb {
            Verb::Status => Call::get(path("")),
            Verb::Acquire => Call::post(path("/acquire"), self.body.clone()),
            Verb::Renew => Call::post(path("/renew"), self.body.clone()),
            Verb::Release => Call::post(path("/release"), self.body.clone()),
            Verb::Cancel => Call::post(path("/cancel"), self.body.clone()),
        };
        Call { answer_within: self.answer_within, ..call }
    }
}

impl Door {
    /// Asks once and gives the answer. What it says is the same whichever door it came through, but for fields that the
    /// native protocol doesn't carry.
    pub(crate) async fn ask(&self, ask: &Ask) -> Result<Answer, CallError> {
        match self {
            Self::Http(client) => client.call(&ask.call()).await,
            Self::Native(native) => native.ask(ask).await,
        }
    }
}
