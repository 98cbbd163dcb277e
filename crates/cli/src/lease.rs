//! What is done with one's own lease: renew it, give it back.
//!
//! Owns: one renewal and what its answer means; a release that is repeated for a bounded time. Never: decides when.

use crate::door::{Ask, Door, Verb};
use http::StatusCode;
use kunci_client::{BootClock, Clock as _, Moment};
use serde_json::json;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// From one attempt to release to the next.
const RELEASE_PAUSE: Duration = Duration::from_millis(200);
/// For this long a release is tried at most.
pub(crate) const RELEASE_MAX: Duration = Duration::from_secs(5);

/// A lease and the way to its cluster.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    /// The way.
    pub(crate) door: Door,
    /// What is locked.
    pub(crate) resource: String,
    /// The proof.
    pub(crate) lease_id: String,
}

/// What came of one renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// The lease lasts `remaining` from `sent_at` at least.
    Renewed {
        /// When the request was sent: before the server counted.
        sent_at: Moment,
        /// What the server answered.
        remaining: Duration,
        /// Whether it can be extended again.
        last: Last,
    },
    /// The server says that the lease is over.
    Ended(String),
    /// No decision: the lease may well be current.
    Failed(String),
}

/// Whether the total-hold limit cut a renewal short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// It can be renewed again.
    No,
    /// No later renewal extends it.
    Final,
}

impl Lease {
    /// Renews once.
    pub(crate) async fn renew(&self, answer_within: Duration) -> Renewal {
        let ask = Ask { answer_within, ..self.ask(Verb::Renew) };
        let sent_at = BootClock.now();
        match self.door.ask(&ask).await {
            Err(error) => Renewal::Failed(error.to_string()),
            Ok(answer) if answer.is_success() => match answer.number("remainingMs") {
                Some(ms) => {
                    let last = answer.body.get("final").and_then(serde_json::Value::as_bool);
                    let last = if last == Some(true) { Last::Final } else { Last::No };
                    Renewal::Renewed { sent_at, remaining: Duration::from_millis(ms), last }
                }
                None => {
                    Renewal::Failed("the answer has no `remainingMs`; is this a kunci server?".to_owned())
                }
            },
            Ok(answer) if answer.status == StatusCode::CONFLICT => Renewal::Ended(answer.refusal_text()),
            // Anything else, a proxy's page or a stranger's port included, isn't a word about this lease.
            Ok(answer) => Renewal::Failed(answer.refusal_text()),
        }
    }

    /// Gives the lease back, trying again for up to `at_most`; says what went wrong when nobody heard.
    pub(crate) async fn release(&self, at_most: Duration) -> Result<(), String> {
        let ask = Ask { answer_within: at_most, ..self.ask(Verb::Release) };
        let mut last = "no time to try".to_owned();
        let tries = async {
            loop {
                match self.door.ask(&ask).await {
                    Ok(answer) if answer.is_passing() => last = answer.refusal_text(),
                    Ok(answer) if answer.is_success() || answer.status == StatusCode::CONFLICT => {
                        return Ok(());
                    }
                    Ok(answer) => return Err(answer.refusal_text()),
                    Err(error) => last = error.to_string(),
                }
                sleep(RELEASE_PAUSE).await;
            }
        };
        match timeout(at_most, tries).await {
            Ok(ended) => ended,
            Err(_) => Err(last),
        }
    }

    fn ask(&self, verb: Verb) -> Ask {
        Ask::new(verb, &self.resource, json!({ "leaseId": self.lease_id }))
    }
}
