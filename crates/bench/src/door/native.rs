//! Requests through native doors.
//!
//! Owns: what their answers mean to a bench. Never: repeats one; `kunci-client` does.

use super::Acquire;
use crate::book::FailureCode;
use crate::caller::{Failed, Known};
use kunci_client::native::{self, Outcome, Refused, Request};
use kunci_client::{Applied, Certainty, Client, Code, Error, ErrorKind, Proof, ResourceName, parse_lease_id};
use kunci_types::{LeaseId, LockDelay, Owner, RequestId};

/// Words for how a lease ended, and for why a proof proves nothing, that are codes in a line's answer.
const LEASE_CODES: [&str; 6] =
    ["expired", "released", "forced", "abandoned", "unknown_lease", "proof_not_allowed"];

pub(super) async fn acquire(client: &Client, acquire: &Acquire<'_>) -> Result<LeaseId, Failed> {
    let acquire = native::Acquire {
        key: acquire.key.clone(),
        ttl: acquire.ttl,
        wait: acquire.wait,
        request_id: Some(acquire.request_id.clone()),
        owner: Some(acquire.owner.clone()),
        lock_delay: LockDelay::from_ms(0),
    };
    match ask(client, &Request::Acquire(acquire)).await? {
        Outcome::Granted(grant) => lease_id(&grant),
        other => Err(answered(&other)),
    }
}

pub(super) async fn cancel(
    client: &Client,
    key: &ResourceName,
    request_id: &RequestId,
    owner: &Owner,
) -> Result<Option<LeaseId>, Failed> {
    let (key, request_id) = (key.clone(), request_id.clone());
    match ask(client, &Request::Cancel { key, request_id, owner: Some(owner.clone()) }).await? {
        Outcome::Granted(grant) => lease_id(&grant).map(Some),
        // Cancelled, or it had ended by itself.
        _ => Ok(None),
    }
}

pub(super) async fn renew(client: &Client, key: &ResourceName, lease_id: LeaseId) -> Result<(), Failed> {
    match ask(client, &Request::Renew { key: key.clone(), lease_id, ttl: None }).await? {
        Outcome::Renewed { .. } => Ok(()),
        other => Err(answered(&other)),
    }
}

pub(super) async fn release(client: &Client, key: &ResourceName, lease_id: LeaseId) -> Result<(), Failed> {
    let release = Request::Release { key: key.clone(), proof: Proof::LeaseId(lease_id) };
    match ask(client, &release).await? {
        Outcome::Released { .. } => Ok(()),
        other => Err(answered(&other)),
    }
}

pub(super) async fn status(client: &Client, key: &ResourceName) -> Result<(), Failed> {
    match ask(client, &Request::Status { key: key.clone() }).await? {
        Outcome::Status(_) => Ok(()),
        other => Err(answered(&other)),
    }
}

async fn ask(client: &Client, request: &Request) -> Result<Outcome, Failed> {
    client.ask(request).await.map_err(|error| failed(&error))
}

fn lease_id(grant: &native::Grant) -> Result<LeaseId, Failed> {
    parse_lease_id(&grant.lease).map_err(|error| Failed::here(error.to_string()))
}

/// An answer, and not the one that was hoped for.
fn answered(outcome: &Outcome) -> Failed {
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
    Failed { code, known, detail }
}

fn failed(error: &Error) -> Failed {
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
    Failed { code, known, detail: error.to_string() }
}

fn code_of(refused: &Refused) -> FailureCode {
    let of_lease = LEASE_CODES.iter().find(|code| **code == refused.code).copied();
    // A later version of the server may have codes that this one doesn't know.
    of_lease.or_else(|| refused.code().map(Code::as_str)).unwrap_or("unknown_code")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kunci_client::native::Answer;

    fn refusal(line: &str) -> Failed {
        answered(&Answer::parse(line.as_bytes()).unwrap().outcome)
    }

    #[test]
    fn an_error_is_counted_by_the_code_of_its_line_and_a_new_one_by_none() {
        let codes = ["expired", "unknown_lease", "over_limit", "out_of_policy", "from_the_future"];
        let found = codes.map(|code| refusal(&format!("E N a code={code} applied=no detail=x at=1.0")).code);
        assert_eq!(found, ["expired", "unknown_lease", "over_limit", "out_of_policy", "unknown_code"]);
        assert_eq!(refusal("H A a holder=w token=1 ttl_ms=5 queue=0 req=r at=1.0").code, "held");
        assert_eq!(refusal("T A a req=r at=1.0").code, "timed_out");
    }

    #[test]
    fn what_a_server_decided_is_not_asked_again() {
        assert!(!refusal("E N a code=expired applied=no detail=x at=1.0").is_undecided());
        let unknown = refusal("E N a code=outcome_unknown applied=unknown detail=x at=1.0");
        assert!(unknown.is_undecided() && unknown.may_have_happened());
    }
}
