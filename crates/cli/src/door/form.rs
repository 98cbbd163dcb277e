//! Answers of the native protocol in the form of HTTP.
//!
//! Owns: which field is which. What the native protocol doesn't carry is left out: `revision`, the wall-clock times
//! `expiresAt`, `newExpiresAt` and `heldSince`, and of a status `ttlMs` and `metadata`. Never: makes such a value up.

use super::{Ask, Verb};
use crate::answer::{Answer, number};
use http::StatusCode;
use kunci_api::native::{Grant, Held, Outcome, Refused, Status};
use kunci_api::{Applied, Code, Invalid, Problem};
use kunci_client::{Certainty, Ending, Error, ErrorKind, FencingToken};
use serde_json::{Value, json};
use std::time::Duration;

/// What HTTP would have answered.
pub(super) fn answer(ask: &Ask, outcome: Outcome) -> Answer {
    let done = |body| Answer { status: StatusCode::OK, body };
    match outcome {
        Outcome::Granted(grant) => done(granted(&grant)),
        Outcome::Released { already } => done(with_flag(json!({ "released": true }), "already", already)),
        Outcome::Renewed { ttl_ms, is_final } => {
            done(with_flag(json!({ "renewed": true, "remainingMs": ttl_ms }), "final", is_final))
        }
        Outcome::Cancelled { repeated, .. } if ask.verb == Verb::Cancel => {
            done(with_flag(json!({ "cancelled": true }), "repeated", repeated))
        }
        Outcome::Status(status) => done(stands(&ask.resource, status)),
        Outcome::Cancelled { request_id, repeated } => {
            refused(ask.verb, ended(Problem { request_id, ..cancelled() }, repeated))
        }
        Outcome::TimedOut { request_id, repeated } => {
            refused(ask.verb, ended(Problem { request_id, ..timed_out() }, repeated))
        }
        Outcome::Held(by) => refused(ask.verb, held(by)),
        Outcome::Error(why) => {
            let problem = problem(why);
            // What was found is what was asked with.
            let asked = problem.field.as_deref().and_then(|field| number(&ask.body, field));
            let found_ms = asked.filter(|_| problem.code == Code::OutOfPolicy);
            refused(ask.verb, Problem { found_ms, ..problem })
        }
        Outcome::Moved { .. } | Outcome::Welcome(_) | Outcome::Pong => {
            let detail = "the answer is to another question; is this a kunci server?";
            refused(ask.verb, Problem::new(Code::OutcomeUnknown, detail))
        }
    }
}

/// What HTTP would have answered to a request that can't be read.
pub(super) fn answer_to_invalid(invalid: Invalid) -> Answer {
    // It doesn't even say what it isn't.
    refused(Verb::Status, invalid.into())
}

/// What HTTP would have answered to an acquire that failed like this.
pub(crate) fn answer_to_error(error: &Error) -> Answer {
    let (code, detail) = code_and_detail(error);
    let problem = Problem::new(code, detail);
    let problem = match error.kind().clone() {
        ErrorKind::Held { holder, token, remaining, queue_length } => Problem {
            holder: Some(holder),
            fencing_token: token.map(FencingToken::get),
            remaining_ms: Some(ms(remaining)),
            queue_length: Some(queue_length),
            ..problem
        },
        ErrorKind::LockDelay(delay) => Problem { remaining_ms: Some(ms(delay)), ..problem },
        ErrorKind::LeaseEnded(ending) => Problem { reason: reason(ending).map(str::to_owned), ..problem },
        _ => problem,
    };
    let applied = match error.certainty() {
        Certainty::NotApplied => Applied::No,
        Certainty::Unknown => Applied::Unknown,
    };
    refused(Verb::Acquire, Problem { applied, ..problem })
}

/// The code of a failed acquire, and its words without the code before them.
fn code_and_detail(error: &Error) -> (Code, String) {
    let text = error.to_string();
    // How long it was tried is another's to say.
    let text = match text.split_once(": ") {
        Some((within, rest)) if within.starts_with("no decision within") => rest.to_owned(),
        _ => text,
    };
    let said = text.split_once(": ").and_then(|(word, rest)| Some((code(word)?, rest.to_owned())));
    let known = match error.kind() {
        ErrorKind::Held { .. } => Code::Held,
        ErrorKind::LockDelay(_) => Code::LockDelay,
        ErrorKind::TimedOut => Code::TimedOut,
        ErrorKind::Cancelled => Code::Cancelled,
        ErrorKind::LeaseEnded(_) | ErrorKind::Lost(_) => Code::LeaseEnded,
        ErrorKind::Unavailable(code) | ErrorKind::Refused(code) => *code,
        ErrorKind::Invalid => said.as_ref().map_or(Code::Invalid, |(code, _)| *code),
        _ => Code::NoLeader,
    };
    match said {
        Some((code, rest)) if code == known => (known, rest),
        _ => (known, text),
    }
}

fn code(word: &str) -> Option<Code> {
    Code::ALL.iter().copied().find(|code| code.as_str() == word)
}

fn reason(ending: Ending) -> Option<&'static str> {
    match ending {
        Ending::Released => Some("released"),
        Ending::Expired => Some("expired"),
        Ending::Forced => Some("forced"),
        Ending::Abandoned => Some("abandoned"),
        _ => None,
    }
}

fn granted(grant: &Grant) -> Value {
    let body = json!({
        "acquired": true,
        "leaseId": grant.lease,
        "fencingToken": grant.token,
        "remainingMs": grant.ttl_ms,
        "requestId": grant.request_id,
    });
    with_flag(body, "repeated", grant.repeated)
}

fn stands(resource: &str, status: Status) -> Value {
    let mut body = json!({ "resource": resource, "held": status.held, "queueLength": status.queue });
    let optional = [
        ("holder", status.holder.map(Value::from)),
        ("fencingToken", status.token.map(Value::from)),
        ("remainingMs", status.ttl_ms.map(Value::from)),
        ("heldMs", status.held_ms.map(Value::from)),
        ("lockDelayMs", status.delay_ms.map(Value::from)),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            body[field] = value;
        }
    }
    body
}

/// Flags are there only when they hold, as over HTTP.
fn with_flag(mut body: Value, flag: &str, holds: bool) -> Value {
    if holds {
        body[flag] = true.into();
    }
    body
}

fn held(by: Held) -> Problem {
    let detail =
        format!("held by {} under fencing token {} for another {} ms", by.holder, by.token, by.ttl_ms);
    Problem {
        holder: Some(by.holder),
        fencing_token: Some(by.token),
        remaining_ms: Some(by.ttl_ms),
        queue_length: Some(by.queue),
        request_id: by.request_id,
        ..Problem::new(Code::Held, detail)
    }
}

fn timed_out() -> Problem {
    Problem::new(Code::TimedOut, "the wait was over before the resource was free")
}

fn cancelled() -> Problem {
    Problem::new(Code::Cancelled, "the request was cancelled, or its client stayed away for too long")
}

fn ended(problem: Problem, repeated: bool) -> Problem {
    Problem { repeated: repeated.then_some(true), ..problem }
}

/// A refusal. Of a lease that is over, the native code is the reason.
fn problem(why: Refused) -> Problem {
    // A code of a later version: that it is refused is all that is known.
    let code = why.code().unwrap_or(Code::OutcomeUnknown);
    let reason = why.reason.or_else(|| (why.code != code.as_str()).then_some(why.code));
    Problem {
        applied: why.applied,
        retry_after_ms: why.retry_ms,
        reason,
        fencing_token: why.token,
        remaining_ms: why.delay_ms,
        field: why.field.map(|field| named_there(&field).to_owned()),
        min_ms: why.min_ms,
        max_ms: why.max_ms,
        limit: why.limit,
        max: why.max,
        request_id: why.request_id,
        ..Problem::new(code, why.detail)
    }
}

/// A field's name over HTTP, for one by which the native protocol knows it.
fn named_there(field: &str) -> &str {
    match field {
        "lease_s" => "leaseDurationMs",
        "wait_s" => "waitTimeoutMs",
        "delay" => "lockDelayMs",
        "key" => "resource",
        other => other,
    }
}

fn refused(verb: Verb, problem: Problem) -> Answer {
    let no = (problem.applied == Applied::No).then_some(false);
    let problem = match verb {
        Verb::Acquire => {
            // Only the record of an earlier call says so of a request.
            let repeated = if problem.code == Code::LeaseEnded { Some(true) } else { problem.repeated };
            Problem { acquired: no, repeated, ..problem }
        }
        Verb::Renew => Problem { renewed: no, ..problem },
        Verb::Release => Problem { released: no, ..problem },
        Verb::Cancel | Verb::Status => problem,
    };
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let mut body = serde_json::to_value(&problem).unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("revision");
    }
    Answer { status, body }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
