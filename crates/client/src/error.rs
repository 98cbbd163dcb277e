//! Why something didn't work, and the two questions that every error answers: did it happen, may I try again?
//!
//! Owns: what callers match on. Never: hides an unknown outcome behind a failure.

use crate::state::{Ending, Loss};
use crate::wire;
use kunci_api::native::{Held, Refused};
use kunci_api::{Applied, Code};
use kunci_types::FencingToken;
use std::fmt;
use std::time::Duration;

/// Whether what failed took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It did not, and will not.
    NotApplied,
    /// It may have, or still may. The client goes on in the background to undo it; what can't be undone ends with its
    /// lease.
    Unknown,
}

/// Whether to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same would fail again: something has to be changed first.
    Never,
    /// At once, or whenever it suits.
    Anytime,
    /// After this much time.
    After(Duration),
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was asked for can't be: a name, a time or an address that breaks the rules.
    Invalid,
    /// Somebody else holds the resource, or waits for it, and the request didn't want to wait.
    Held {
        /// The owner of the current lease.
        holder: String,
        /// Its fencing token.
        token: Option<FencingToken>,
        /// How long the lease lasts if it isn't renewed.
        remaining: Duration,
        /// How many wait.
        queue_length: u64,
    },
    /// A lock-delay keeps the resource closed for this much longer.
    LockDelay(Duration),
    /// The wait was over before the resource was free.
    TimedOut,
    /// Somebody cancelled the request.
    Cancelled,
    /// The lease ended before it could be handed out.
    LeaseEnded(Ending),
    /// The lock had been lost before it was released.
    Lost(Loss),
    /// No server could be reached: as many tries as there are connections failed in a row.
    Unreachable,
    /// Servers were reached, and none could serve for as long as the client's patience lasts.
    Unavailable(Code),
    /// A server refused for another reason; its codes are in `docs/errors.md`.
    Refused(Code),
    /// The client is closed, or its runtime was shut down.
    Closed,
    /// The system gives no random bits.
    NoRandomness,
}

/// Why something didn't work.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    certainty: Certainty,
    retry: Retry,
    detail: String,
}

impl Error {
    pub(crate) fn new(
        kind: ErrorKind,
        certainty: Certainty,
        retry: Retry,
        detail: impl Into<String>,
    ) -> Self {
        Self(Box::new(Inner { kind, certainty, retry, detail: detail.into() }))
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Whether it took effect nevertheless.
    pub fn certainty(&self) -> Certainty {
        self.0.certainty
    }

    /// Whether to try again. Each try is a request of its own; the client itself has repeated this one as often as
    /// made sense.
    pub fn retry(&self) -> Retry {
        self.0.retry
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, Certainty::NotApplied, Retry::Never, detail)
    }

    pub(crate) fn closed(certainty: Certainty) -> Self {
        let detail = "the client is closed: connect again";
        Self::new(ErrorKind::Closed, certainty, Retry::Never, detail)
    }

    pub(crate) fn timed_out() -> Self {
        let detail = "the wait is over; ask with a longer wait";
        Self::new(ErrorKind::TimedOut, Certainty::NotApplied, Retry::Anytime, detail)
    }

    pub(crate) fn cancelled() -> Self {
        let detail = "the request was cancelled, or its client stayed away for too long";
        Self::new(ErrorKind::Cancelled, Certainty::NotApplied, Retry::Anytime, detail)
    }

    pub(crate) fn lost(loss: Loss, certainty: Certainty) -> Self {
        Self::new(ErrorKind::Lost(loss), certainty, Retry::Never, loss.to_string())
    }

    pub(crate) fn lease_ended(ending: Ending) -> Self {
        let detail = format!("the lease ended before it could be handed out: {ending}");
        Self::new(ErrorKind::LeaseEnded(ending), Certainty::NotApplied, Retry::Anytime, detail)
    }

    pub(crate) fn held(held: Held) -> Self {
        let detail = format!(
            "held by {} under fencing token {} for another {} ms",
            held.holder, held.token, held.ttl_ms
        );
        let kind = ErrorKind::Held {
            holder: held.holder,
            token: FencingToken::presented(held.token).ok(),
            remaining: Duration::from_millis(held.ttl_ms),
            queue_length: held.queue,
        };
        Self::new(kind, Certainty::NotApplied, Retry::Anytime, detail)
    }

    /// A refusal that decided.
    pub(crate) fn refused(refused: &Refused) -> Self {
        let certainty = certainty_of(refused.applied);
        let code = refused.code();
        let kind = match code {
            Some(Code::Invalid | Code::OutOfPolicy) => ErrorKind::Invalid,
            Some(Code::LockDelay) => {
                ErrorKind::LockDelay(Duration::from_millis(refused.delay_ms.unwrap_or_default()))
            }
            Some(code) => ErrorKind::Refused(code),
            None => ErrorKind::Refused(Code::OutcomeUnknown),
        };
        let retry = match (&kind, refused.retry_ms) {
            (ErrorKind::LockDelay(delay), _) => Retry::After(*delay),
            (_, Some(ms)) => Retry::After(Duration::from_millis(ms)),
            (_, None) => Retry::Never,
        };
        Self::new(kind, certainty, retry, format!("{}: {}", refused.code, wire::detail(refused)))
    }

    /// Granted, and since then nobody answered for as long as a lease lasts.
    pub(crate) fn lost_touch() -> Self {
        let detail = "the lock was granted, and no server has answered since";
        Self::new(ErrorKind::Unreachable, Certainty::Unknown, Retry::Anytime, detail)
    }

    /// An answer that doesn't belong to the request: whatever it is, nothing is known of the request.
    pub(crate) fn astray() -> Self {
        let detail =
            "the server answered something else than what was asked; check that client and server fit";
        Self::new(ErrorKind::Refused(Code::OutcomeUnknown), Certainty::Unknown, Retry::Anytime, detail)
    }
}

fn certainty_of(applied: Applied) -> Certainty {
    match applied {
        Applied::No => Certainty::NotApplied,
        Applied::Unknown => Certainty::Unknown,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.detail)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, certainty, retry, detail } = &*self.0;
        let mut shown = f.debug_struct("Error");
        shown.field("kind", kind).field("certainty", certainty).field("retry", retry);
        shown.field("detail", detail).finish()
    }
}

impl std::error::Error for Error {}
