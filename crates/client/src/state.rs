//! What a holder knows about its lock.
//!
//! Owns: the three states, and why the last of them came. Never: decides them; see `renewer`.

use crate::clock::Moment;
use std::fmt;
use std::time::Duration;

/// How sure it is that a lock is held.
///
/// ```text
///              no renewal gets through               own deadline passed,
///   ┌──────┐ ─────────────────────────► ┌───────────┐ or the server says so ┌──────┐
///   │ held │                            │ uncertain │ ────────────────────► │ lost │
///   └──────┘ ◄───────────────────────── └───────────┘                       └──────┘
///       │      a renewal is answered                                           ▲
///       └──────────────────────────────────────────────────────────────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Held: nobody else can have been granted the resource.
    Held,
    /// Still held, and renewals don't get through: no new work should start.
    Uncertain,
    /// No longer held, and never again: somebody else may be.
    Lost,
}

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// Its holder released it.
    Released,
    /// Its time was over.
    Expired,
    /// An operator ended it.
    Forced,
    /// The server ended it because its grant had reached nobody in time.
    Abandoned,
    /// The server doesn't know it: it ended long ago, or in another cluster's life.
    Unknown,
}

impl Ending {
    /// Reads the reason that comes with a refusal.
    pub(crate) fn read(reason: Option<&str>) -> Self {
        match reason {
            Some("released") => Self::Released,
            Some("expired") => Self::Expired,
            Some("forced") => Self::Forced,
            Some("abandoned") => Self::Abandoned,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Released => "it was released",
            Self::Expired => "it has expired",
            Self::Forced => "an operator ended it",
            Self::Abandoned => "it was ended because its grant had reached nobody in time",
            Self::Unknown => "the server doesn't know it",
        })
    }
}

/// Why a lock was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// The client's own deadline passed without a renewal; somebody else may hold it by now.
    #[error("the lock is lost: no renewal was answered before its deadline")]
    Deadline,
    /// The policy's limit on the total hold ended it, as the last renewals had said.
    #[error("the lock is lost: the policy's limit on holding it is reached")]
    HoldLimit,
    /// The server said that the lease has ended.
    #[error("the lock is lost: {0}")]
    Ended(Ending),
    /// Nobody renews it any more, because the runtime of its client was shut down.
    #[error("the lock is lost: the runtime that renewed it is gone")]
    ClientGone,
}

/// All that is known about one lease at one time: what the renewer decides, and what states are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// From here on it counts as lost, exclusive.
    pub(crate) deadline: Moment,
    /// From here on it is in doubt, whatever else is known; `None` when no renewal is to come.
    pub(crate) doubt_at: Option<Moment>,
    /// Renewals fail.
    pub(crate) failing: bool,
    /// The total-hold limit is near: no renewal extends it any more.
    pub(crate) is_final: bool,
    pub(crate) lost: Option<Loss>,
}

impl Facts {
    pub(crate) fn loss_at(&self, now: Moment) -> Option<Loss> {
        let at_deadline = if self.is_final { Loss::HoldLimit } else { Loss::Deadline };
        self.lost.or((now >= self.deadline).then_some(at_deadline))
    }

    pub(crate) fn state_at(&self, now: Moment) -> State {
        if self.loss_at(now).is_some() {
            State::Lost
        } else if self.failing || self.doubt_at.is_some_and(|at| now >= at) {
            State::Uncertain
        } else {
            State::Held
        }
    }

    /// How long the lock may still be relied on; nothing once it is lost.
    pub(crate) fn remaining_at(&self, now: Moment) -> Duration {
        match self.loss_at(now) {
            Some(_) => Duration::ZERO,
            None => self.deadline.since(now),
        }
    }
}
