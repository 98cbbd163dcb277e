//! What clients are answered.
//!
//! Owns: the results and their fields, also what becomes of an HTTP body's content in them. Never: writes or reads a line;
//! `write` and `read` do.

use super::request::{Op, Subject, Tag};
use crate::code::{Applied, Code};
use crate::grant::{GrantBody, ReleaseBody, RenewBody};
use crate::problem::Problem;
use crate::view::StatusBody;
use std::fmt;

/// The most bytes of a detail, before it is coded: a line with it keeps to its limit.
const DETAIL_BYTES_MAX: usize = 512;

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it answers. None to a line of which so much couldn't be read.
    pub subject: Option<Subject>,
    /// What it says.
    pub outcome: Outcome,
    /// Where it took effect.
    pub at: At,
    /// The tag of the request.
    pub tag: Option<Tag>,
}

/// A place in the order that all answers of a cluster took effect in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The index of the log entry.
    pub index: u64,
    /// The place in it.
    pub place: u32,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `A`: the resource is the caller's.
    Granted(Grant),
    /// `R`: the lease is over by the holder's wish.
    Released {
        /// By an earlier call.
        already: bool,
    },
    /// `N`: the lease has its time again.
    Renewed {
        /// How long it lasts, in ms.
        ttl_ms: u64,
        /// No later renewal extends it.
        is_final: bool,
    },
    /// `C`: no grant follows.
    Cancelled {
        /// The request.
        request_id: Option<String>,
        /// It had ended without a grant before.
        repeated: bool,
    },
    /// `Q`: how the resource stands.
    Status(Status),
    /// `T`: the wait is over, and no grant follows.
    TimedOut {
        /// The request.
        request_id: Option<String>,
        /// It had timed out before.
        repeated: bool,
    },
    /// `H`: somebody else holds it, or waits for it, and the request didn't want to wait.
    Held(Held),
    /// `M`: another node leads; nothing was proposed here.
    Moved {
        /// `host:port` of the leader's native door.
        leader: String,
        /// The request id to ask there with; of an acquire only.
        request_id: Option<String>,
    },
    /// `W`: the answer to a hello.
    Welcome(Welcome),
    /// `P`: the answer to a ping.
    Pong,
    /// `E`: anything else.
    Error(Refused),
}

/// The resource is the caller's. Its `Debug` keeps the secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Grant {
    /// What the protected resource compares: 1 to 2^53 − 1.
    pub token: u64,
    /// The lease id, a secret: 22 characters of unpadded base64url.
    pub lease: String,
    /// How long the lease lasts, in ms.
    pub ttl_ms: u64,
    /// The request id, the caller's or the server's.
    pub request_id: String,
    /// The lease was granted to an earlier call of the same request.
    pub repeated: bool,
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, ttl_ms, repeated, .. } = self;
        f.debug_struct("Grant")
            .field("token", token)
            .field("ttl_ms", ttl_ms)
            .field("repeated", repeated)
            .finish_non_exhaustive()
    }
}

/// Who stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The owner of the current lease.
    pub holder: String,
    /// Its token.
    pub token: u64,
    /// How long it lasts, in ms.
    pub ttl_ms: u64,
    /// How many wait.
    pub queue: u64,
    /// The request id that was refused.
    pub request_id: Option<String>,
}

/// How a resource stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether somebody holds it.
    pub held: bool,
    /// The owner of the current lease.
    pub holder: Option<String>,
    /// Its token.
    pub token: Option<u64>,
    /// How long it lasts, in ms.
    pub ttl_ms: Option<u64>,
    /// How long it has been held, in ms.
    pub held_ms: Option<u64>,
    /// How long a lock-delay keeps the resource closed, in ms.
    pub delay_ms: Option<u64>,
    /// How many wait.
    pub queue: u64,
}

/// Who is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The version that is spoken from now on.
    pub version: u32,
    /// The cluster's id; none while the node belongs to no cluster.
    pub cluster: Option<String>,
    /// `host:port` of the leader's native door, when one is known.
    pub leader: Option<String>,
}

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The code; for a renewal or release of a lease that isn't the caller's any more, how it ended.
    pub code: String,
    /// Whether the request took effect.
    pub applied: Applied,
    /// When to ask again, in ms from now; none when that wouldn't help.
    pub retry_ms: Option<u64>,
    /// How the lease ended.
    pub reason: Option<String>,
    /// The token of the lease that it is about.
    pub token: Option<u64>,
    /// How long a lock-delay keeps the resource closed, in ms.
    pub delay_ms: Option<u64>,
    /// The field at fault, by its name in the grammar of requests.
    pub field: Option<String>,
    /// The least that the policy allows, in ms.
    pub min_ms: Option<u64>,
    /// The most that the policy allows, in ms.
    pub max_ms: Option<u64>,
    /// The policy's limit that is reached.
    pub limit: Option<String>,
    /// How much that is.
    pub max: Option<u64>,
    /// The request id of an acquire: repeat it with this one.
    pub request_id: Option<String>,
    /// What was found and what was expected, for people.
    pub detail: String,
}

impl Outcome {
    /// A refusal of a request, in the words of its own result where it has one.
    pub fn refused(op: Option<Op>, problem: Problem) -> Self {
        let repeated = problem.repeated == Some(true);
        match (op, problem.code) {
            (Some(Op::Acquire), Code::TimedOut) => {
                Self::TimedOut { request_id: problem.request_id, repeated }
            }
            (Some(Op::Acquire), Code::Cancelled) => {
                Self::Cancelled { request_id: problem.request_id, repeated }
            }
            (Some(Op::Acquire), Code::Held) => Self::Held(Held {
                holder: problem.holder.unwrap_or_default(),
                token: problem.fencing_token.unwrap_or_default(),
                ttl_ms: problem.remaining_ms.unwrap_or_default(),
                queue: problem.queue_length.unwrap_or_default(),
                request_id: problem.request_id,
            }),
            _ => Self::Error(Refused::new(op, problem)),
        }
    }
}

impl Refused {
    fn new(op: Option<Op>, problem: Problem) -> Self {
        let is_of_a_lease = matches!(op, Some(Op::Renew | Op::Release))
            && matches!(problem.code, Code::LeaseEnded | Code::NotHolder);
        let (code, reason) = match problem.reason {
            Some(reason) if is_of_a_lease => (reason, None),
            reason => (problem.code.as_str().to_owned(), reason),
        };
        Self {
            code,
            applied: problem.applied,
            retry_ms: problem.retry_after_ms,
            reason,
            token: problem.fencing_token,
            delay_ms: problem.remaining_ms,
            field: problem.field.map(named_here),
            min_ms: problem.min_ms,
            max_ms: problem.max_ms,
            limit: problem.limit,
            max: problem.max,
            request_id: problem.request_id,
            detail: shortened(problem.detail),
        }
    }

    /// The code in the words of HTTP, where this release knows it.
    pub fn code(&self) -> Option<Code> {
        match self.code.as_str() {
            "released" | "expired" | "forced" | "abandoned" => Some(Code::LeaseEnded),
            "unknown_lease" | "proof_not_allowed" => Some(Code::NotHolder),
            code => Code::ALL.iter().copied().find(|known| known.as_str() == code),
        }
    }
}

/// A field's name in the grammar of requests, for one by which HTTP knows it.
fn named_here(field: String) -> String {
    match field.as_str() {
        "leaseDurationMs" => "lease_s".to_owned(),
        "waitTimeoutMs" => "wait_s".to_owned(),
        "lockDelayMs" => "delay".to_owned(),
        _ => field,
    }
}

fn shortened(mut text: String) -> String {
    let end = text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= DETAIL_BYTES_MAX);
    let end = end.last().unwrap_or(0);
    text.truncate(end);
    text
}

impl From<GrantBody> for Outcome {
    fn from(body: GrantBody) -> Self {
        Self::Granted(Grant {
            token: body.fencing_token,
            lease: body.lease_id,
            ttl_ms: body.remaining_ms,
            request_id: body.request_id,
            repeated: body.repeated,
        })
    }
}

impl From<ReleaseBody> for Outcome {
    fn from(body: ReleaseBody) -> Self {
        Self::Released { already: body.already }
    }
}

impl From<RenewBody> for Outcome {
    fn from(body: RenewBody) -> Self {
        Self::Renewed { ttl_ms: body.remaining_ms, is_final: body.is_final }
    }
}

impl From<StatusBody> for Outcome {
    fn from(body: StatusBody) -> Self {
        let status = body.status;
        Self::Status(Status {
            held: status.held,
            holder: status.holder,
            token: status.fencing_token,
            ttl_ms: status.remaining_ms,
            held_ms: status.held_ms,
            delay_ms: status.lock_delay_ms,
            queue: status.queue_length,
        })
    }
}
