//! The requests of one client.
//!
//! Owns: what a request is made of, and what its answer means to a bench. Never: measures, or decides what comes next.

use crate::book::FailureCode;
use kunci_client::native::{self, Outcome, Refused, Request, WaitFor};
use kunci_client::{
    Applied, Certainty, Client, Clock, Code, Error, ErrorKind, Proof, Randomness, ResourceName,
    parse_lease_id,
};
use kunci_types::{LeaseId, LockDelay, Owner, RequestId, Ttl};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Words for how a lease ended, and for why a proof proves nothing, that are codes in a line's answer.
const LEASE_CODES: [&str; 6] =
    ["expired", "released", "forced", "abandoned", "unknown_lease", "proof_not_allowed"];

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
    known: Known,
    /// For people.
    pub(crate) detail: String,
}

/// What is known of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
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
    client: Client,
    pub(crate) common: Arc<Common>,
}

impl Caller {
    pub(crate) fn new(client: Client, common: Arc<Common>) -> Self {
        Self { client, common }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
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
        let acquire = native::Acquire {
            key: key.clone(),
            ttl: Ttl::from_ms(u64::try_from(self.common.ttl.as_millis()).unwrap_or(u64::MAX)),
            wait,
            request_id: Some(request_id.clone()),
            owner: Some(self.common.owner.clone()),
            lock_delay: LockDelay::from_ms(0),
        };
        match self.ask(&Request::Acquire(acquire)).await? {
            Outcome::Granted(grant) => held(key, &grant),
            other => Err(Failed::answered(&other)),
        }
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
        let cancel = Request::Cancel {
            key: key.clone(),
            request_id: request_id.clone(),
            owner: Some(self.common.owner.clone()),
        };
        match self.ask(&cancel).await? {
            Outcome::Granted(grant) => self.release(&held(key, &grant)?).await,
            // Cancelled, or it had ended by itself.
            _ => Ok(()),
        }
    }

    pub(crate) async fn renew(&self, held: &Held) -> Result<(), Failed> {
        let renew = Request::Renew { key: held.key.clone(), lease_id: held.lease_id, ttl: None };
        match self.ask(&renew).await? {
            Outcome::Renewed { .. } => Ok(()),
            other => Err(Failed::answered(&other)),
        }
    }

    pub(crate) async fn release(&self, held: &Held) -> Result<(), Failed> {
        let release = Request::Release { key: held.key.clone(), proof: Proof::LeaseId(held.lease_id) };
        match self.ask(&release).await? {
            Outcome::Released { .. } => Ok(()),
            other => Err(Failed::answered(&other)),
        }
    }

    pub(crate) async fn status(&self, key: &ResourceName) -> Result<(), Failed> {
        match self.ask(&Request::Status { key: key.clone() }).await? {
            Outcome::Status(_) => Ok(()),
            other => Err(Failed::answered(&other)),
        }
    }

    async fn ask(&self, request: &Request) -> Result<Outcome, Failed> {
        self.client.ask(request).await.map_err(|error| Failed::from(&error))
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
    fn here(detail: String) -> Self {
        Self { code: "not_sent", known: Known::NotApplied, detail }
    }

    /// An answer, and not the one that was hoped for.
    fn answered(outcome: &Outcome) -> Self {
        let (code, detail) = match outcome {
            Outcome::Held(held) => (Code::Held.as_str(), format!("held by {}", held.holder)),
            Outcome::TimedOut { .. } => (Code::TimedOut.as_str(), "the wait is over".to_owned()),
            Outcome::Cancelled { .. } => (Code::Cancelled.as_str(), "the request was cancelled".to_owned()),
            Outcome::Error(refused) => (code_of(refused), format!("{}: {}", refused.code, refused.detail)),
            _ => ("astray", "the server answered something else than what was asked".to_owned()),
        };
        let known = match outcome {
            Outcome::Error(Refused { applied: Applied::Unknown, .. }) => Known::Nothing,
            _ => Known::Decided,
        };
        Self { code, known, detail }
    }
}

impl From<&Error> for Failed {
    fn from(error: &Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Unavailable(code) | ErrorKind::Refused(code) => code.as_str(),
            ErrorKind::Unreachable => "unreachable",
            ErrorKind::Held { .. } => Code::Held.as_str(),
            ErrorKind::Invalid => Code::Invalid.as_str(),
            ErrorKind::Closed => "closed",
            _ => "other",
        };
        let known = match error.certainty() {
            Certainty::NotApplied => Known::NotApplied,
            Certainty::Unknown => Known::Nothing,
        };
        Self { code, known, detail: error.to_string() }
    }
}

fn code_of(refused: &Refused) -> FailureCode {
    let of_lease = LEASE_CODES.iter().find(|code| **code == refused.code).copied();
    // A later version of the server may have codes that this one doesn't know.
    of_lease.or_else(|| refused.code().map(Code::as_str)).unwrap_or("unknown_code")
}

fn held(key: &ResourceName, grant: &native::Grant) -> Result<Held, Failed> {
    let lease_id = parse_lease_id(&grant.lease).map_err(|error| Failed::here(error.to_string()))?;
    Ok(Held { key: key.clone(), lease_id })
}

/// So many random bytes, in hexadecimal.
pub(crate) fn hex<const BYTES: usize>(randomness: &dyn Randomness) -> std::io::Result<String> {
    let mut bytes = [0_u8; BYTES];
    randomness.fill(&mut bytes)?;
    let mut text = String::with_capacity(BYTES * 2);
    for byte in bytes {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kunci_client::native::Answer;

    fn failed(line: &str) -> Failed {
        Failed::answered(&Answer::parse(line.as_bytes()).unwrap().outcome)
    }

    #[test]
    fn an_error_is_counted_by_the_code_of_its_line_and_a_new_one_by_none() {
        let codes = ["expired", "unknown_lease", "over_limit", "out_of_policy", "from_the_future"];
        let found = codes.map(|code| failed(&format!("E N a code={code} applied=no detail=x at=1.0")).code);
        assert_eq!(found, ["expired", "unknown_lease", "over_limit", "out_of_policy", "unknown_code"]);
        assert_eq!(failed("H A a holder=w token=1 ttl_ms=5 queue=0 req=r at=1.0").code, "held");
        assert_eq!(failed("T A a req=r at=1.0").code, "timed_out");
    }

    #[test]
    fn what_a_server_decided_is_not_asked_again() {
        assert!(!failed("E N a code=expired applied=no detail=x at=1.0").is_undecided());
        let unknown = failed("E N a code=outcome_unknown applied=unknown detail=x at=1.0");
        assert!(unknown.is_undecided() && unknown.may_have_happened());
    }
}
