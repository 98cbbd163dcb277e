//! A cluster through its native doors.
//!
//! Owns: reading the addresses, the connection, and putting a request into the native protocol. Never: spells an
//! answer; see `form`.

use super::form::{self, answer_to_error};
use super::{Ask, Verb};
use crate::answer::Answer;
use crate::client::CallError;
use crate::exit::Failure;
use kunci_api::native::{Acquire, Request, WaitFor};
use kunci_api::{
    AcquireRequest, CancelRequest, Invalid, Proof, ReleaseRequest, RenewRequest, parse, resource,
};
use kunci_client::{Certainty, Client, Error, ErrorKind};
use kunci_types::{Ttl, Wait};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// The TTL of an acquire that names none: the native protocol has no default.
const TTL_DEFAULT_MS: u64 = 30_000;

/// Native doors of one cluster; connected when they are first used.
#[derive(Clone, Debug)]
pub(crate) struct Native {
    addresses: Vec<String>,
    client: Arc<OnceCell<Client>>,
}

impl Native {
    /// Reads what `argument` names: `host:port,…`.
    pub(crate) fn new(text: &str, argument: &str) -> Result<Self, Failure> {
        let addresses: Vec<String> = text.split(',').map(|address| address.trim().to_owned()).collect();
        for address in &addresses {
            let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty() && !host.contains('/'));
            if port.is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
                return Err(Failure::usage(format!(
                    "{argument}: `{address}` is no native door; expected host:port,… such as 127.0.0.1:7401"
                )));
            }
        }
        Ok(Self { addresses, client: Arc::default() })
    }

    /// The addresses.
    pub(crate) fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Asks once: every door is tried, and redirects are followed.
    pub(super) async fn ask(&self, ask: &Ask) -> Result<Answer, CallError> {
        let request = match request(ask) {
            Ok(request) => request,
            Err(invalid) => return Ok(form::answer_to_invalid(invalid)),
        };
        // How often a request is repeated, and what is said meanwhile, is decided in one place for both doors.
        let client = self.client.get_or_try_init(|| self.connect(Duration::ZERO)).await?;
        match client.ask(&request).await {
            Ok(outcome) => Ok(form::answer(ask, outcome)),
            Err(error) => self.no_decision(&error),
        }
    }

    /// Connects. A client with patience repeats by itself what no server decides, and goes on when none is there.
    pub(crate) async fn connect(&self, patience: Duration) -> Result<Client, CallError> {
        let builder = Client::builder().patience(patience).through_outages(patience);
        builder.connect(&self.addresses).await.map_err(|error| self.not_sent(cause(&error)))
    }

    fn no_decision(&self, error: &Error) -> Result<Answer, CallError> {
        match (error.kind(), error.certainty()) {
            (ErrorKind::Unreachable | ErrorKind::Closed, Certainty::NotApplied) => {
                Err(self.not_sent(cause(error)))
            }
            (ErrorKind::Unreachable | ErrorKind::Closed, Certainty::Unknown) => {
                Err(self.no_answer(cause(error)))
            }
            _ => Ok(answer_to_error(error)),
        }
    }

    fn not_sent(&self, cause: String) -> CallError {
        CallError::NotSent { url: self.addresses.join(","), cause }
    }

    fn no_answer(&self, cause: String) -> CallError {
        CallError::NoAnswer { url: self.addresses.join(","), cause }
    }
}

/// What went wrong, without saying once more that nobody was reached.
fn cause(error: &Error) -> String {
    let text = error.to_string();
    text.strip_prefix("no server can be reached: ").map_or_else(|| text.clone(), str::to_owned)
}

/// Reads a request by the rules of HTTP, so that it is refused in the same words.
fn request(ask: &Ask) -> Result<Request, Invalid> {
    let key = resource(&ask.resource)?;
    let body = ask.body.to_string();
    let body = body.as_bytes();
    Ok(match ask.verb {
        Verb::Status => Request::Status { key },
        Verb::Acquire => {
            let asked = parse::<AcquireRequest>(body)?.read()?;
            Request::Acquire(Acquire {
                key,
                ttl: asked.ttl.unwrap_or(Ttl::from_ms(TTL_DEFAULT_MS)),
                wait: match asked.wait {
                    Wait::Try => WaitFor::Once,
                    Wait::UpToMs(ms) => WaitFor::UpToMs(ms),
                },
                request_id: asked.request_id,
                owner: Some(asked.owner),
                lock_delay: asked.lock_delay,
            })
        }
        Verb::Renew => {
            let renewed = parse::<RenewRequest>(body)?.read(key)?;
            let Proof::LeaseId(lease_id) = renewed.proof else { return Err(Invalid::Proof) };
            Request::Renew { key: renewed.resource, lease_id, ttl: renewed.ttl }
        }
        Verb::Release => Request::Release { key, proof: parse::<ReleaseRequest>(body)?.read()? },
        Verb::Cancel => {
            let cancelled = parse::<CancelRequest>(body)?.read()?;
            Request::Cancel { key, request_id: cancelled.request_id, owner: Some(cancelled.owner) }
        }
    })
}
