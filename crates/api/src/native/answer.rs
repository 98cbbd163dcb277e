//! What clients are answered, and how it is written.
//!
//! Owns: the results and their fields, also how an HTTP body's content looks as a line. Never: reads a line; `read`
//! does.

use super::coding;
use super::request::{Op, Subject, Tag};
use crate::code::{Applied, Code};
use crate::grant::{GrantBody, ReleaseBody, RenewBody};
use crate::problem::Problem;
use crate::view::StatusBody;

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

/// The resource is the caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The field at fault.
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
            field: problem.field,
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

impl Answer {
    /// Appends the line with its end.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.outcome.letter().as_bytes());
        match &self.subject {
            Some(Subject { op, key }) => {
                word(out, op.letter());
                if let Some(key) = key {
                    out.push(b' ');
                    coding::encode(key.as_str(), out);
                }
            }
            None => word(out, "?"),
        }
        self.outcome.write(out);
        word(out, &format!("at={}.{}", self.at.index, self.at.place));
        if let Some(tag) = self.tag {
            word(out, &format!("#{}", tag.get()));
        }
        out.push(b'\n');
    }
}

impl Outcome {
    fn letter(&self) -> &'static str {
        match self {
            Self::Granted(_) => "A",
            Self::Released { .. } => "R",
            Self::Renewed { .. } => "N",
            Self::Cancelled { .. } => "C",
            Self::Status(_) => "Q",
            Self::TimedOut { .. } => "T",
            Self::Held(_) => "H",
            Self::Moved { .. } => "M",
            Self::Welcome(_) => "W",
            Self::Pong => "P",
            Self::Error(_) => "E",
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Granted(grant) => {
                number(out, "token", grant.token);
                text(out, "lease", &grant.lease);
                number(out, "ttl_ms", grant.ttl_ms);
                text(out, "req", &grant.request_id);
                flag(out, "repeated", grant.repeated);
            }
            Self::Released { already } => flag(out, "already", *already),
            Self::Renewed { ttl_ms, is_final } => {
                number(out, "ttl_ms", *ttl_ms);
                flag(out, "final", *is_final);
            }
            Self::Cancelled { request_id, repeated } | Self::TimedOut { request_id, repeated } => {
                text_if(out, "req", request_id.as_deref());
                flag(out, "repeated", *repeated);
            }
            Self::Status(status) => status.write(out),
            Self::Held(held) => {
                text(out, "holder", &held.holder);
                number(out, "token", held.token);
                number(out, "ttl_ms", held.ttl_ms);
                number(out, "queue", held.queue);
                text_if(out, "req", held.request_id.as_deref());
            }
            Self::Moved { leader, request_id } => {
                text(out, "leader", leader);
                text_if(out, "req", request_id.as_deref());
            }
            Self::Welcome(welcome) => {
                number(out, "version", welcome.version.into());
                text_if(out, "cluster", welcome.cluster.as_deref());
                text_if(out, "leader", welcome.leader.as_deref());
            }
            Self::Pong => {}
            Self::Error(refused) => refused.write(out),
        }
    }
}

impl Status {
    fn write(&self, out: &mut Vec<u8>) {
        word(out, if self.held { "held=true" } else { "held=false" });
        text_if(out, "holder", self.holder.as_deref());
        number_if(out, "token", self.token);
        number_if(out, "ttl_ms", self.ttl_ms);
        number_if(out, "held_ms", self.held_ms);
        number_if(out, "delay_ms", self.delay_ms);
        number(out, "queue", self.queue);
    }
}

impl Refused {
    fn write(&self, out: &mut Vec<u8>) {
        text(out, "code", &self.code);
        word(out, if self.applied == Applied::No { "applied=no" } else { "applied=unknown" });
        number_if(out, "retry_ms", self.retry_ms);
        text_if(out, "reason", self.reason.as_deref());
        number_if(out, "token", self.token);
        number_if(out, "delay_ms", self.delay_ms);
        text_if(out, "field", self.field.as_deref());
        number_if(out, "min_ms", self.min_ms);
        number_if(out, "max_ms", self.max_ms);
        text_if(out, "limit", self.limit.as_deref());
        number_if(out, "max", self.max);
        text_if(out, "req", self.request_id.as_deref());
        text(out, "detail", &self.detail);
    }
}

fn word(out: &mut Vec<u8>, word: &str) {
    out.push(b' ');
    out.extend_from_slice(word.as_bytes());
}

fn name(out: &mut Vec<u8>, name: &str) {
    word(out, name);
    out.push(b'=');
}

fn text(out: &mut Vec<u8>, field: &str, text: &str) {
    name(out, field);
    coding::encode(text, out);
}

fn text_if(out: &mut Vec<u8>, field: &str, value: Option<&str>) {
    if let Some(value) = value {
        text(out, field, value);
    }
}

fn number(out: &mut Vec<u8>, field: &str, number: u64) {
    name(out, field);
    out.extend_from_slice(number.to_string().as_bytes());
}

fn number_if(out: &mut Vec<u8>, field: &str, value: Option<u64>) {
    if let Some(value) = value {
        number(out, field, value);
    }
}

/// A flag is there, or not.
fn flag(out: &mut Vec<u8>, field: &str, is_set: bool) {
    if is_set {
        name(out, field);
        out.extend_from_slice(b"true");
    }
}
