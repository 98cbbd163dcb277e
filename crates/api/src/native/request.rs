//! What clients ask, and how they write it.
//!
//! Owns: the operations and their fields. Never: reads a line; `parse` does.

use super::{coding, seconds};
use crate::lease_id::lease_id_text;
use crate::request::Proof;
use kunci_types::{LeaseId, LockDelay, Owner, RequestId, ResourceName, Ttl};
use std::fmt;

/// What a line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Acquire.
    Acquire,
    /// Renew.
    Renew,
    /// Release.
    Release,
    /// Cancel.
    Cancel,
    /// Status.
    Status,
    /// Hello.
    Hello,
    /// Ping.
    Ping,
}

impl Op {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Acquire, Self::Renew, Self::Release, Self::Cancel, Self::Status, Self::Hello, Self::Ping];

    /// Its letter.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Acquire => "A",
            Self::Renew => "N",
            Self::Release => "R",
            Self::Cancel => "C",
            Self::Status => "Q",
            Self::Hello => "H",
            Self::Ping => "P",
        }
    }

    /// The whole request, as the grammar has it.
    pub const fn form(self) -> &'static str {
        match self {
            Self::Acquire => "A <key> <lease_s> <wait_s> [req=<id>] [owner=<id>] [delay=<s>] [#<n>]",
            Self::Renew => "N <key> <lease_id> [lease_s] [#<n>]",
            Self::Release => "R <key> <lease_id or token=<n>,owner=<id>> [#<n>]",
            Self::Cancel => "C <key> <request_id> [owner=<id>] [#<n>]",
            Self::Status => "Q <key> [#<n>]",
            Self::Hello => "H <version> [token=<secret>] [#<n>]",
            Self::Ping => "P [#<n>]",
        }
    }

    pub(super) fn of(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.letter() == letter)
    }

    /// Whether it is about a resource.
    pub(super) const fn has_key(self) -> bool {
        !matches!(self, Self::Hello | Self::Ping)
    }
}

/// What a request is about, as its answer echoes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The operation.
    pub op: Op,
    /// The resource; none for a hello and a ping.
    pub key: Option<ResourceName>,
}

/// The number that a client gave a request, to know its answer by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u64);

impl Tag {
    /// Any number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What is asked.
    pub request: Request,
    /// The client's number for it.
    pub tag: Option<Tag>,
}

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Take a resource, or queue for it.
    Acquire(Acquire),
    /// Set a lease back to its full time.
    Renew {
        /// The resource.
        key: ResourceName,
        /// The lease.
        lease_id: LeaseId,
        /// Its TTL from now on; as before when nothing is said.
        ttl: Option<Ttl>,
    },
    /// End a lease.
    Release {
        /// The resource.
        key: ResourceName,
        /// That the lease is one's own.
        proof: Proof,
    },
    /// Leave the queue, or never enter it.
    Cancel {
        /// The resource.
        key: ResourceName,
        /// The request that is meant.
        request_id: RequestId,
        /// Who asked; this connection's own name when nothing is said.
        owner: Option<Owner>,
    },
    /// How a resource stands.
    Status {
        /// The resource.
        key: ResourceName,
    },
    /// Who is there, and what is spoken?
    Hello(Hello),
    /// Is anybody there?
    Ping,
}

/// Take a resource, or queue for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquire {
    /// The resource.
    pub key: ResourceName,
    /// How long the lease lasts without renewal.
    pub ttl: Ttl,
    /// What to do when it isn't free.
    pub wait: WaitFor,
    /// The request id; made by the server when nothing is said.
    pub request_id: Option<RequestId>,
    /// Who asks; this connection's own name when nothing is said.
    pub owner: Option<Owner>,
    /// How long the resource stays closed when the lease expires or is forced.
    pub lock_delay: LockDelay,
}

/// What an acquire does when it can't have the resource at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Is refused: `try`.
    Once,
    /// Queues for as long as the policy and the connection allow: `0`.
    AsLongAsAllowed,
    /// Queues for this many milliseconds, at least 1.
    UpToMs(u64),
}

/// Who is there, and what is spoken?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The newest version that the client speaks, from 1.
    pub version: u32,
    /// What proves who the client is.
    pub token: Option<Secret>,
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Request {
    /// What it is about.
    pub fn subject(&self) -> Subject {
        let (op, key) = match self {
            Self::Acquire(acquire) => (Op::Acquire, Some(&acquire.key)),
            Self::Renew { key, .. } => (Op::Renew, Some(key)),
            Self::Release { key, .. } => (Op::Release, Some(key)),
            Self::Cancel { key, .. } => (Op::Cancel, Some(key)),
            Self::Status { key } => (Op::Status, Some(key)),
            Self::Hello(_) => (Op::Hello, None),
            Self::Ping => (Op::Ping, None),
        };
        Subject { op, key: key.cloned() }
    }
}

impl Line {
    /// Appends the line with its end. It has at most [`super::LINE_BYTES_MAX`] bytes before that, but for a hello
    /// with a secret of more than 1 KiB.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer { out };
        writer.request(&self.request);
        if let Some(tag) = self.tag {
            writer.word(&format!("#{}", tag.get()));
        }
        writer.out.push(b'\n');
    }
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn request(&mut self, request: &Request) {
        let Subject { op, key } = request.subject();
        self.out.extend_from_slice(op.letter().as_bytes());
        if let Some(key) = key {
            self.out.push(b' ');
            coding::encode(key.as_str(), self.out);
        }
        match request {
            Request::Acquire(acquire) => self.acquire(acquire),
            Request::Renew { lease_id, ttl, .. } => {
                self.word(&lease_id_text(lease_id));
                if let Some(ttl) = ttl {
                    self.seconds(" ", ttl.as_ms());
                }
            }
            Request::Release { proof: Proof::LeaseId(lease_id), .. } => self.word(&lease_id_text(lease_id)),
            Request::Release { proof: Proof::OwnerToken { owner, token }, .. } => {
                self.word(&format!("token={token}"));
                self.text(",owner=", owner.as_str());
            }
            Request::Cancel { request_id, owner, .. } => {
                self.text(" ", request_id.as_str());
                self.text_if(" owner=", owner.as_ref().map(Owner::as_str));
            }
            Request::Hello(Hello { version, token }) => {
                self.word(&version.to_string());
                self.text_if(" token=", token.as_ref().map(Secret::reveal));
            }
            Request::Status { .. } | Request::Ping => {}
        }
    }

    fn acquire(&mut self, acquire: &Acquire) {
        self.seconds(" ", acquire.ttl.as_ms());
        match acquire.wait {
            WaitFor::Once => self.word("try"),
            WaitFor::AsLongAsAllowed => self.word("0"),
            WaitFor::UpToMs(ms) => self.seconds(" ", ms),
        }
        self.text_if(" req=", acquire.request_id.as_ref().map(RequestId::as_str));
        self.text_if(" owner=", acquire.owner.as_ref().map(Owner::as_str));
        if acquire.lock_delay.as_ms() > 0 {
            self.seconds(" delay=", acquire.lock_delay.as_ms());
        }
    }

    fn word(&mut self, word: &str) {
        self.out.push(b' ');
        self.out.extend_from_slice(word.as_bytes());
    }

    fn seconds(&mut self, before: &str, ms: u64) {
        self.out.extend_from_slice(before.as_bytes());
        seconds::write(ms, self.out);
    }

    fn text(&mut self, before: &str, text: &str) {
        self.out.extend_from_slice(before.as_bytes());
        coding::encode(text, self.out);
    }

    fn text_if(&mut self, before: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(before, text);
        }
    }
}
