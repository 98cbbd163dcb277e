//! What a reply of the log means to the audit log: nothing, or that something was denied, and why.
//!
//! Never: a text for the caller; `service/refusal` has those.

use kunci_api::Code;
use kunci_core::reply::{
    AcquireRefusal, AcquireReply, CancelReply, ForceReleaseReply, LeaseEnd, NotHolder, ReleaseReply,
    RenewReply, SetPolicyReply, Told,
};
use kunci_types::FencingToken;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Acquire,
    Renew,
    Release,
    Cancel,
    ForceRelease,
    Policy,
    Members,
}

impl Action {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Cancel => "cancel",
            Self::ForceRelease => "force_release",
            Self::Policy => "policy",
            Self::Members => "members",
        }
    }
}

/// Why something was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Why {
    pub(super) code: Code,
    pub(super) reason: Option<&'static str>,
    pub(super) token: Option<FencingToken>,
}

impl Why {
    fn of(code: Code) -> Self {
        Self { code, reason: None, token: None }
    }

    fn not_holder(why: NotHolder) -> Self {
        match why {
            NotHolder::Ended(how) => Self::ended(how, None),
            NotHolder::UnknownLease => Self { reason: Some("unknown_lease"), ..Self::of(Code::NotHolder) },
            NotHolder::ProofNotAllowed => {
                Self { reason: Some("proof_not_allowed"), ..Self::of(Code::NotHolder) }
            }
        }
    }

    fn ended(how: LeaseEnd, token: Option<FencingToken>) -> Self {
        let reason = match how {
            LeaseEnd::Released => "released",
            LeaseEnd::Expired => "expired",
            LeaseEnd::Forced => "forced",
            LeaseEnd::Abandoned => "abandoned",
        };
        Self { reason: Some(reason), token, ..Self::of(Code::LeaseEnded) }
    }
}

/// What an acquire was denied for. An answer that repeats an earlier one was recorded with that.
pub(super) fn acquire(reply: &AcquireReply) -> Option<Why> {
    let AcquireReply::Refused(refusal) = reply else { return None };
    Some(match refusal {
        AcquireRefusal::Held(held_by) => Why { token: Some(held_by.token), ..Why::of(Code::Held) },
        AcquireRefusal::LockDelay { .. } => Why::of(Code::LockDelay),
        AcquireRefusal::TimedOut(Told::Again) | AcquireRefusal::Cancelled(Told::Again) => return None,
        AcquireRefusal::TimedOut(Told::First) => Why::of(Code::TimedOut),
        AcquireRefusal::Cancelled(Told::First) => Why::of(Code::Cancelled),
        AcquireRefusal::Superseded => Why::of(Code::Superseded),
        AcquireRefusal::LeaseEnded { how, token } => Why::ended(*how, Some(*token)),
        AcquireRefusal::RequestIdReused => Why::of(Code::RequestIdReused),
        AcquireRefusal::OutOfPolicy(_) => Why::of(Code::OutOfPolicy),
        AcquireRefusal::OverLimit(_) => Why::of(Code::OverLimit),
    })
}

pub(super) fn renew(reply: &RenewReply) -> Option<Why> {
    match reply {
        RenewReply::Renewed { .. } => None,
        RenewReply::NotHolder(why) => Some(Why::not_holder(*why)),
        RenewReply::OutOfPolicy(_) => Some(Why::of(Code::OutOfPolicy)),
    }
}

pub(super) fn release(reply: &ReleaseReply) -> Option<Why> {
    match reply {
        ReleaseReply::Released(_) => None,
        ReleaseReply::NotHolder(why) => Some(Why::not_holder(*why)),
    }
}

/// A cancel that finds its grant is told of it, which is no refusal.
pub(super) fn cancel(reply: &CancelReply) -> Option<Why> {
    match reply {
        CancelReply::Cancelled(_) | CancelReply::Granted(_) => None,
        CancelReply::LeaseEnded { how, token } => Some(Why::ended(*how, Some(*token))),
        CancelReply::RequestIdReused => Some(Why::of(Code::RequestIdReused)),
        CancelReply::OverLimit(_) => Some(Why::of(Code::OverLimit)),
    }
}

pub(super) fn force_release(reply: &ForceReleaseReply) -> Option<Why> {
    let reason = match reply {
        ForceReleaseReply::Forced { .. } => return None,
        ForceReleaseReply::OtherToken { .. } => "other_lease",
        ForceReleaseReply::NotHeld => "not_held",
    };
    Some(Why { reason: Some(reason), ..Why::of(Code::NotHolder) })
}

pub(super) fn set_policy(reply: &SetPolicyReply) -> Option<Why> {
    match reply {
        SetPolicyReply::Changed => None,
        SetPolicyReply::OtherRevision { .. } => Some(Why::of(Code::PolicyChanged)),
        SetPolicyReply::Invalid(_) => Some(Why::of(Code::OutOfPolicy)),
    }
}
