//! An answer's meaning.
//!
//! Owns: from JSON to what was told. Never: whether that can be true.

use super::call::{Answer, Op};
use serde_json::Value;

/// A resource as an answer shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The holder's fencing token.
    pub token: u64,
    /// The holder's name.
    pub holder: String,
    /// Until the lease ends.
    pub remaining_ms: u64,
    /// Left out of refusals.
    pub ttl_ms: Option<u64>,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The stable code.
    pub code: String,
    /// How a lease ended.
    pub reason: Option<String>,
    /// Who holds the resource.
    pub held: Option<Held>,
    /// A token that it names.
    pub token: Option<u64>,
    /// A time that it names.
    pub remaining_ms: Option<u64>,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are the contract's words")]
pub enum Told {
    /// The caller holds it.
    Granted { token: u64, lease: String, remaining_ms: u64, repeated: bool },
    /// The caller is in the queue.
    Queued { place: u64 },
    /// The lease goes on.
    Renewed { remaining_ms: u64 },
    /// The lease is over.
    Released { already: bool },
    /// The caller waits no more.
    Cancelled,
    /// Held by somebody, or free (perhaps closed by a lock-delay).
    Status { held: Option<Held>, queue_length: u64 },
    /// Who waits, and whether each is there.
    Queue { waiters: Vec<(String, bool)> },
    /// Resources and their holders; whether that is all.
    List { locks: Vec<(String, Option<Held>)>, is_whole: bool },
    /// The policy in force, and since which revision.
    Policy { since: u64, limits: Value },
    /// It was refused.
    Refused(Refused),
}

/// Codes of refusals that the log decided; only these have a place in its order.
const DECIDED: [&str; 10] = [
    "held",
    "lock_delay",
    "timed_out",
    "cancelled",
    "superseded",
    "lease_ended",
    "request_id_reused",
    "not_holder",
    "out_of_policy",
    "over_limit",
];

impl Told {
    /// Reads an answer to `op`.
    ///
    /// # Errors
    /// Says what is missing: an answer that nobody can read is a fault of its own.
    pub fn read(op: &Op, answer: &Answer) -> Result<Self, String> {
        let body = &answer.body;
        let missing = |what: &str| format!("status {} without {what}: {body}", answer.status);
        let number = |name: &str| body[name].as_u64().ok_or_else(|| missing(name));
        match (answer.status, op) {
            (200, Op::Acquire { .. } | Op::Cancel { .. }) if body["acquired"] == true => Ok(Self::Granted {
                token: number("fencingToken")?,
                lease: body["leaseId"].as_str().ok_or_else(|| missing("leaseId"))?.to_owned(),
                remaining_ms: number("remainingMs")?,
                repeated: body["repeated"] == true || matches!(op, Op::Cancel { .. }),
            }),
            (202, Op::Acquire { .. }) => Ok(Self::Queued { place: number("position")? }),
            (200, Op::Renew { .. }) if body["renewed"] == true => {
                Ok(Self::Renewed { remaining_ms: number("remainingMs")? })
            }
            (200, Op::Release { .. }) if body["released"] == true => {
                Ok(Self::Released { already: body["already"] == true })
            }
            (200, Op::Cancel { .. }) if body["cancelled"] == true => Ok(Self::Cancelled),
            (200, Op::Status { .. }) => {
                Ok(Self::Status { held: held(body), queue_length: number("queueLength")? })
            }
            (200, Op::Queue { .. }) => {
                let waiters = body["waiters"].as_array().ok_or_else(|| missing("waiters"))?;
                let waiter = |waiter: &Value| {
                    (waiter["owner"].as_str().unwrap_or_default().to_owned(), waiter["attached"] == true)
                };
                Ok(Self::Queue { waiters: waiters.iter().map(waiter).collect() })
            }
            (200, Op::List { .. }) => {
                let locks = body["locks"].as_array().ok_or_else(|| missing("locks"))?;
                let lock =
                    |lock: &Value| (lock["resource"].as_str().unwrap_or_default().to_owned(), held(lock));
                Ok(Self::List { locks: locks.iter().map(lock).collect(), is_whole: body["next"].is_null() })
            }
            (200, Op::Policy | Op::ChangePolicy { .. }) => {
                Ok(Self::Policy { since: number("policyRevision")?, limits: body["policy"].clone() })
            }
            (400.., _) => Ok(Self::Refused(refused(answer).ok_or_else(|| missing("code"))?)),
            _ => Err(missing("what such a call is answered")),
        }
    }

    /// Whether the log decided it, so that its position is its place in the order. Others only say where the
    /// answering node stood.
    pub fn is_decided(&self) -> bool {
        match self {
            Self::Refused(refused) => DECIDED.contains(&refused.code.as_str()),
            _ => true,
        }
    }
}

fn held(body: &Value) -> Option<Held> {
    (body["held"] == true).then(|| Held {
        token: body["fencingToken"].as_u64().unwrap_or_default(),
        holder: body["holder"].as_str().unwrap_or_default().to_owned(),
        remaining_ms: body["remainingMs"].as_u64().unwrap_or_default(),
        ttl_ms: body["ttlMs"].as_u64(),
    })
}

fn refused(answer: &Answer) -> Option<Refused> {
    let body = &answer.body;
    let token = body["fencingToken"].as_u64();
    let remaining_ms = body["remainingMs"].as_u64();
    let held = body["holder"].as_str().and_then(|holder| {
        Some(Held { token: token?, holder: holder.to_owned(), remaining_ms: remaining_ms?, ttl_ms: None })
    });
    Some(Refused {
        code: answer.code()?.to_owned(),
        reason: body["reason"].as_str().map(str::to_owned),
        held,
        token,
        remaining_ms,
    })
}
