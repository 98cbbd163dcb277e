//! How long requests took, by operation and outcome.
//!
//! Owns: the few words for what became of a request. Never: a lock or a look-up on the way of a request.

use kunci_api::Code;
use kunci_replica::measures::{Histogram, LATENCY_US};
use std::array::from_fn;
use std::time::Duration;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// An acquire.
    Acquire,
    /// A renewal.
    Renew,
    /// One call about many renewals.
    RenewMany,
    /// A release.
    Release,
    /// A cancel.
    Cancel,
    /// A forced release.
    ForceRelease,
    /// A look at locks.
    Read,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The caller holds the resource.
    Granted,
    /// It waits, and the client calls again.
    Queued,
    /// It took effect, or was read.
    Done,
    /// It didn't want to wait.
    Refused,
    /// Its wait was over.
    TimedOut,
    /// It was cancelled, or a newer call gets the answer.
    Cancelled,
    /// The caller doesn't hold the lease.
    Lost,
    /// There is too much of something.
    Limited,
    /// Nobody serves.
    Unavailable,
    /// The client was sent to the leader.
    Moved,
    /// The request was wrong.
    Rejected,
    /// It may have taken effect.
    Unknown,
    /// The client went away before its answer.
    Gone,
}

impl Op {
    pub(super) const ALL: [Self; 7] = [
        Self::Acquire,
        Self::Renew,
        Self::RenewMany,
        Self::Release,
        Self::Cancel,
        Self::ForceRelease,
        Self::Read,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::RenewMany => "renew_many",
            Self::Release => "release",
            Self::Cancel => "cancel",
            Self::ForceRelease => "force_release",
            Self::Read => "read",
        }
    }
}

impl Outcome {
    pub(super) const ALL: [Self; 13] = [
        Self::Granted,
        Self::Queued,
        Self::Done,
        Self::Refused,
        Self::TimedOut,
        Self::Cancelled,
        Self::Lost,
        Self::Limited,
        Self::Unavailable,
        Self::Moved,
        Self::Rejected,
        Self::Unknown,
        Self::Gone,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Queued => "queued",
            Self::Done => "done",
            Self::Refused => "refused",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
            Self::Limited => "limited",
            Self::Unavailable => "unavailable",
            Self::Moved => "moved",
            Self::Rejected => "rejected",
            Self::Unknown => "unknown",
            Self::Gone => "gone",
        }
    }

    /// What a refusal with this code is.
    pub(crate) const fn refused(code: Code) -> Self {
        match code {
            Code::Held | Code::LockDelay => Self::Refused,
            Code::TimedOut => Self::TimedOut,
            Code::Cancelled | Code::Superseded => Self::Cancelled,
            Code::LeaseEnded | Code::NotHolder => Self::Lost,
            Code::OverLimit | Code::Overloaded | Code::StorageLow => Self::Limited,
            Code::NoQuorum | Code::NoLeader | Code::NotEnabled | Code::PeerUnreachable => Self::Unavailable,
            Code::OutcomeUnknown => Self::Unknown,
            Code::Invalid
            | Code::NotFound
            | Code::MethodNotAllowed
            | Code::TooSlow
            | Code::RequestIdReused
            | Code::PolicyChanged
            | Code::ChangeInProgress
            | Code::UnsafeChange
            | Code::AlreadyFormed
            | Code::OtherCluster
            | Code::NotReady
            | Code::UnknownNode
            | Code::Compacted
            | Code::TooLarge
            | Code::UnsupportedMediaType
            | Code::OutOfPolicy => Self::Rejected,
        }
    }
}

/// How long the requests of one door took.
#[derive(Debug)]
pub(crate) struct Requests {
    /// By operation, then outcome, in the order of `ALL`.
    took: [[Histogram; Outcome::ALL.len()]; Op::ALL.len()],
}

impl Default for Requests {
    fn default() -> Self {
        Self { took: from_fn(|_| from_fn(|_| Histogram::new(&LATENCY_US))) }
    }
}

impl Requests {
    /// Takes up a request that has ended.
    #[expect(
        clippy::as_conversions,
        reason = "the place of a word in its list, which is as long as its table"
    )]
    pub(crate) fn record(&self, op: Op, outcome: Outcome, took: Duration) {
        if let Some(histogram) = self.took.get(op as usize).and_then(|of| of.get(outcome as usize)) {
            histogram.record_time(took);
        }
    }

    /// What is shown: outcomes that were seen, and those that somebody would look for in vain.
    pub(super) fn shown(&self) -> impl Iterator<Item = (Op, Outcome, &Histogram)> {
        let all = Op::ALL.into_iter().zip(&self.took).flat_map(|(op, of)| {
            Outcome::ALL.into_iter().zip(of).map(move |(outcome, histogram)| (op, outcome, histogram))
        });
        all.filter(|(op, outcome, histogram)| is_usual(*op, *outcome) || !histogram.is_empty())
    }
}

/// Whether the series is there from the start, so that its first step is a step too.
fn is_usual(op: Op, outcome: Outcome) -> bool {
    match op {
        Op::Acquire => {
            matches!(outcome, Outcome::Granted | Outcome::Refused | Outcome::TimedOut | Outcome::Unknown)
        }
        Op::Renew | Op::Release => matches!(outcome, Outcome::Done | Outcome::Lost | Outcome::Unknown),
        Op::RenewMany | Op::Cancel | Op::ForceRelease | Op::Read => outcome == Outcome::Done,
    }
}
