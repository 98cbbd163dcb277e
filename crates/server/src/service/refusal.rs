//! Why a call was refused, in the words of the wire.
//!
//! Owns: the one way from each refusal of the log to its code and fields. Never: decides a refusal.

use kunci_api::{Code, PolicyBody, Problem};
use kunci_core::reply::{AcquireRefusal, HeldBy, LeaseEnd, NotHolder, OverLimit, Told};
use kunci_replica::{Answered, Position, Refusal};
use kunci_types::{FencingToken, InvalidPolicy, OutOfPolicy, Revision};

/// A refusal, and its place in the order that histories are checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What the caller is told.
    pub problem: Problem,
    /// Where it was decided.
    pub position: Position,
}

impl Refused {
    pub(super) fn new<T>(problem: Problem, at: &Answered<T>) -> Box<Self> {
        let problem = Problem { revision: at.revision.get(), ..problem };
        Box::new(Self { problem, position: at.position })
    }
}

pub(super) fn undecided(refusal: Refusal) -> Problem {
    let code = match refusal {
        Refusal::NoLeader => Code::NoLeader,
        Refusal::NoQuorum => Code::NoQuorum,
        Refusal::Overloaded => Code::Overloaded,
        Refusal::StorageLow => Code::StorageLow,
        Refusal::NotEnabled => Code::NotEnabled,
        Refusal::OutcomeUnknown => Code::OutcomeUnknown,
    };
    Problem::new(code, refusal.to_string())
}

pub(super) fn acquire(refusal: &AcquireRefusal) -> Problem {
    match refusal {
        AcquireRefusal::Held(held_by) => held(held_by),
        AcquireRefusal::LockDelay { remaining_ms } => Problem {
            remaining_ms: Some(*remaining_ms),
            ..Problem::new(
                Code::LockDelay,
                format!("a lock-delay keeps the resource closed for another {remaining_ms} ms"),
            )
        },
        AcquireRefusal::TimedOut(told) => {
            repeated(Problem::new(Code::TimedOut, "the wait was over before the resource was free"), *told)
        }
        AcquireRefusal::Cancelled(told) => repeated(
            Problem::new(
                Code::Cancelled,
                "the request was cancelled, or its client stayed away for too long",
            ),
            *told,
        ),
        AcquireRefusal::Superseded => {
            Problem::new(Code::Superseded, "a newer call with the same request id gets the answer")
        }
        // There is a record only of what ended before.
        AcquireRefusal::LeaseEnded { how, token } => repeated(lease_ended(*how, Some(*token)), Told::Again),
        AcquireRefusal::RequestIdReused => request_id_reused(),
        AcquireRefusal::OutOfPolicy(out) => out_of_policy(*out),
        AcquireRefusal::OverLimit(limit) => over_limit(*limit),
    }
}

fn repeated(problem: Problem, told: Told) -> Problem {
    Problem { repeated: (told == Told::Again).then_some(true), ..problem }
}

fn held(held_by: &HeldBy) -> Problem {
    let HeldBy { holder, token, remaining_ms, .. } = held_by;
    let detail = format!("held by {holder} under fencing token {token} for another {remaining_ms} ms");
    with_holder(Problem::new(Code::Held, detail), held_by)
}

fn with_holder(problem: Problem, held_by: &HeldBy) -> Problem {
    Problem {
        holder: Some(held_by.holder.to_string()),
        fencing_token: Some(held_by.token.get()),
        remaining_ms: Some(held_by.remaining_ms),
        queue_length: Some(held_by.queue_length),
        ..problem
    }
}

pub(super) fn lease_ended(how: LeaseEnd, token: Option<FencingToken>) -> Problem {
    let (reason, detail) = match how {
        LeaseEnd::Released => ("released", "the lease was released"),
        LeaseEnd::Expired => ("expired", "the lease has expired"),
        LeaseEnd::Forced => ("forced", "an operator ended the lease"),
        LeaseEnd::Abandoned => ("abandoned", "the lease was ended because nobody was told of it in time"),
    };
    Problem {
        reason: Some(reason.to_owned()),
        fencing_token: token.map(FencingToken::get),
        ..Problem::new(Code::LeaseEnded, detail)
    }
}

pub(super) fn request_id_reused() -> Problem {
    let detail = "the request id belongs to a request with other arguments; draw a new one for each acquire";
    Problem::new(Code::RequestIdReused, detail)
}

pub(super) fn not_holder(why: NotHolder) -> Problem {
    let (reason, detail) = match why {
        NotHolder::Ended(how) => return lease_ended(how, None),
        NotHolder::UnknownLease => ("unknown_lease", "no lease of this resource has this proof"),
        NotHolder::ProofNotAllowed => {
            ("proof_not_allowed", "the policy takes no owner and token as proof; send the lease id")
        }
    };
    Problem { reason: Some(reason.to_owned()), ..Problem::new(Code::NotHolder, detail) }
}

pub(super) fn other_lease(meant: FencingToken, held_by: &HeldBy) -> Problem {
    let detail = format!("the current lease has fencing token {}, not {meant}", held_by.token);
    let problem = Problem { reason: Some("other_lease".to_owned()), ..Problem::new(Code::NotHolder, detail) };
    with_holder(problem, held_by)
}

pub(super) fn not_held(meant: FencingToken) -> Problem {
    let detail = format!("nobody holds the resource; the lease with fencing token {meant} is over");
    Problem { reason: Some("not_held".to_owned()), ..Problem::new(Code::NotHolder, detail) }
}

pub(super) fn out_of_policy(out: OutOfPolicy) -> Problem {
    // The words of `Policy`'s checks; another one only goes without a field name.
    let field = match out.what {
        "lease duration" => Some("leaseDurationMs"),
        "wait" => Some("waitTimeoutMs"),
        "lock-delay" => Some("lockDelayMs"),
        _ => None,
    };
    Problem {
        field: field.map(str::to_owned),
        found_ms: Some(out.found_ms),
        min_ms: Some(out.min_ms),
        max_ms: Some(out.max_ms),
        ..Problem::new(Code::OutOfPolicy, out.to_string())
    }
}

pub(super) fn over_limit(limit: OverLimit) -> Problem {
    let (field, what, max) = match limit {
        OverLimit::WaitersOfResource { max } => ("waitersPerResourceMax", "waiters of the resource", max),
        OverLimit::WaitersOfNamespace { max } => ("waitersPerNamespaceMax", "waiters of the namespace", max),
        OverLimit::Waiters { max } => ("waitersMax", "waiters in all", max),
        OverLimit::LeasesOfNamespace { max } => ("leasesPerNamespaceMax", "leases of the namespace", max),
        OverLimit::Leases { max } => ("leasesMax", "leases in all", max),
        OverLimit::Outcomes { max } => ("outcomesMax", "remembered outcomes", max),
    };
    Problem {
        limit: Some(field.to_owned()),
        max: Some(max),
        ..Problem::new(Code::OverLimit, format!("there are {max} {what}, which is the policy's limit"))
    }
}

pub(super) fn policy_changed(replaces: Revision, current: Revision) -> Problem {
    let detail = format!("the policy in force is of revision {current}, not {replaces}; read it again");
    Problem { policy_revision: Some(current.get()), ..Problem::new(Code::PolicyChanged, detail) }
}

pub(super) fn invalid_policy(invalid: &InvalidPolicy) -> Problem {
    let InvalidPolicy { field, found, min, max } = *invalid;
    let field = PolicyBody::field_name(field);
    let detail = format!("policy field {field} is {found}: expected {min} to {max}");
    Problem { field: Some(field), min: Some(min), max: Some(max), ..Problem::new(Code::OutOfPolicy, detail) }
}
