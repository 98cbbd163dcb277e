//! The record of one request: what makes a retried acquire act once.

use crate::command::Acquire;
use crate::invariants::broken;
use crate::reply::LeaseEnd;
use alloc::boxed::Box;
use alloc::string::String;
use core::cmp::Ordering;
use core::fmt;
use core::num::NonZeroU64;
use kunci_types::{
    Attempt, Caller, ClientAddress, ClusterTime, FencingToken, LeaseId, LockDelay, Metadata, Owner,
    RequestId, ResourceName, Revision, Ttl,
};
use triomphe::ThinArc;
use twox_hash::XxHash3_64;

/// The identity of a request: its caller and its request id.
///
/// Its order means nothing and is the same everywhere: by a hash of the text first, so that finding one among millions
/// compares numbers that lie side by side instead of following a pointer at every step.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKey {
    hash: u64,
    text: RequestText,
}

/// The text of a [`RequestKey`]: one that all share, because the table and its indexes each hold one for every remembered
/// request, and for the same reason only a pointer wide. Control characters are in neither part of it, so the separator
/// can't be.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RequestText(ThinArc<(), u8>);

const UNPROVEN: char = 'o';
const PROVEN: char = 'c';
const SEPARATOR: char = '\n';

impl RequestKey {
    /// The identity of `request_id` when `caller` uses it.
    pub fn new(caller: &Caller, request_id: &RequestId) -> Self {
        let mut text = String::with_capacity(2 + caller.name().as_str().len() + request_id.as_str().len());
        text.push(match caller {
            Caller::Unproven(_) => UNPROVEN,
            Caller::Proven(_) => PROVEN,
        });
        text.push_str(caller.name().as_str());
        text.push(SEPARATOR);
        text.push_str(request_id.as_str());
        Self::from_log(&text)
    }

    pub(crate) fn from_log(text: &str) -> Self {
        RequestText(ThinArc::from_header_and_slice((), text.as_bytes())).key()
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn text(&self) -> &RequestText {
        &self.text
    }

    pub(crate) fn as_str(&self) -> &str {
        self.text.as_str()
    }

    /// The name of the caller, where authentication gave it.
    pub fn proven_caller(&self) -> Option<&str> {
        self.as_str().strip_prefix(PROVEN)?.split(SEPARATOR).next()
    }

    /// Whether this is a request of `caller`.
    pub(crate) fn is_of(&self, caller: &Caller) -> bool {
        let (kind, name) = match caller {
            Caller::Unproven(name) => (UNPROVEN, name),
            Caller::Proven(name) => (PROVEN, name),
        };
        self.as_str()
            .strip_prefix(kind)
            .and_then(|rest| rest.strip_prefix(name.as_str()))
            .is_some_and(|rest| rest.starts_with(SEPARATOR))
    }
}

impl RequestText {
    /// The identity that it is the text of.
    pub(crate) fn key(&self) -> RequestKey {
        RequestKey { hash: XxHash3_64::oneshot(self.as_bytes()), text: self.clone() }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.0.slice
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).unwrap_or_else(|_| broken("a text that isn't text"))
    }
}

impl PartialOrd for RequestText {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// As texts; what the pointer points to has its length in front.
impl Ord for RequestText {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Request ids stay out of logs: who sees one could come back with it.
        f.write_str("RequestKey(..)")
    }
}

impl fmt::Debug for RequestText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As above.
        f.write_str("RequestText(..)")
    }
}

/// What is remembered of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) resource: ResourceName,
    pub(crate) arguments: Arguments,
    pub(crate) state: RequestState,
}

/// A node remembers millions: what makes one larger has to go elsewhere, as what a waiter needs.
const _: () = assert!(size_of::<Request>() <= 64);

/// What a retry must repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// The acquire hasn't come: its cancel came first.
    Unseen,
    /// A fingerprint of TTL, lock-delay and metadata. The metadata itself would cost 1 KiB for each of
    /// millions of remembered requests; two that collide only get the first one's answer.
    Seen(NonZeroU64),
}

/// How far a request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestState {
    /// Boxed, so that the millions that are over don't take the room that a waiter needs.
    Waiting(Box<Waiting>),
    /// Granted, and the lease is current.
    Granted { token: FencingToken },
    /// Granted, and the lease is over.
    Ended { at: ClusterTime, how: LeaseEnd, token: FencingToken, lease_id: LeaseId },
    /// Never granted, and never to be.
    Closed { at: ClusterTime, how: Closed },
}

/// How a request ended that was never granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    TimedOut,
    Cancelled,
}

/// What the grant of a waiter needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) terms: Terms,
    /// The revision at which it joined: its place in the queue.
    pub(crate) place: Revision,
    pub(crate) since: ClusterTime,
    /// When the wait is over; set once.
    pub(crate) until: ClusterTime,
    pub(crate) attachment: Attachment,
}

/// What a lease is granted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) owner: Owner,
    pub(crate) ttl: Ttl,
    pub(crate) lock_delay: LockDelay,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) lease_id: LeaseId,
    pub(crate) returnable: Returnable,
    /// Where the newest call of the request came from.
    pub(crate) address: Option<ClientAddress>,
}

/// Whether a client that lost its call can come back with the request id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returnable {
    Yes,
    /// The server made the request id and hasn't told it.
    No,
}

/// Whether a call of the request is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attachment {
    /// `term` counts takeovers: a call opened in an earlier one has until the end of the presence time to
    /// come back.
    Attached { attempt: Attempt, term: u64 },
    /// No call is open; dropped at `until`.
    Detached { until: ClusterTime },
}

impl Waiting {
    /// When something must be done about it if nothing happens: its wait ends, or it is dropped.
    pub(crate) fn due(&self) -> ClusterTime {
        match self.attachment {
            Attachment::Attached { .. } => self.until,
            #[cfg(kunci_plants)]
            Attachment::Detached { .. } if crate::planted::is(crate::planted::Bug::WaitersStay) => self.until,
            Attachment::Detached { until } => until.min(self.until),
        }
    }

    /// The open call, if there is one.
    pub(crate) fn attempt(&self) -> Option<Attempt> {
        match self.attachment {
            Attachment::Attached { attempt, .. } => Some(attempt),
            Attachment::Detached { .. } => None,
        }
    }
}

impl Request {
    /// Whether `acquire` repeats what this request asked for.
    pub(crate) fn is_repeated_by(&self, acquire: &Acquire) -> bool {
        let same_arguments = match self.arguments {
            Arguments::Unseen => true,
            Arguments::Seen(fingerprint) => fingerprint == fingerprint_of(acquire),
        };
        same_arguments && self.resource == acquire.resource
    }
}

/// A fingerprint of what a retry must repeat. The wait isn't among it: the first call's wait stands.
pub(crate) fn fingerprint_of(acquire: &Acquire) -> NonZeroU64 {
    // A TTL that was left out is told apart from the same one spelt out: the default may change in between.
    let spelt_out = u64::from(acquire.ttl.is_some());
    let ttl_ms = acquire.ttl.map_or(0, Ttl::as_ms);
    let numbers = [spelt_out, ttl_ms, acquire.lock_delay.as_ms()].map(u64::to_be_bytes);
    let hash = XxHash3_64::oneshot(numbers.as_flattened());
    fingerprint_from_log(match &acquire.metadata {
        None => hash,
        Some(metadata) => XxHash3_64::oneshot_with_seed(hash ^ 1, metadata.as_str().as_bytes()),
    })
}

/// A fingerprint that is never 0, which takes no room beside it to tell whether there is one.
pub(crate) fn fingerprint_from_log(hash: u64) -> NonZeroU64 {
    NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN)
}
