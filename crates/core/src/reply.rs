//! What the locks answer.
//!
//! A refusal is a reply, not an error: it was decided by the log, and every replica decided it alike.

use alloc::vec::Vec;
use kunci_types::{Attempt, FencingToken, InvalidPolicy, LeaseId, OutOfPolicy, Owner, Revision};

/// Everything that applying one entry brought about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// One for each command, in the entry's order.
    pub replies: Vec<Placed<Reply>>,
    /// Final answers for calls that waited.
    pub answers: Vec<Answer>,
    /// What happened, in order of revision.
    pub events: Vec<crate::event::Event>,
    /// What the audit log needs besides of the events that are about a lease or the end of a wait, in their order.
    pub marks: Vec<crate::event::Mark>,
    /// How many steps the entry took; every place is smaller.
    pub places: u32,
    /// How long what ended with it had lasted.
    pub spans: Vec<Span>,
    /// How many leases were renewed with less than a third of their TTL left.
    pub late_renewals: u32,
}

/// How long something lasted that has ended, in cluster time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// In ms.
    pub ms: u64,
    /// What, and how it ended.
    pub of: SpanOf,
}

/// What lasted for a while, and how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanOf {
    /// A wait in a queue.
    Wait(WaitEnd),
    /// A lease.
    Lease(LeaseEnd),
}

/// How a wait in a queue ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// With a grant.
    Granted,
    /// By time.
    TimedOut,
    /// By its client.
    Cancelled,
    /// Its client stayed away for longer than the waiter grace.
    Dropped,
}

/// An answer and where in the log's order it took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<T> {
    /// The answer.
    pub value: T,
    /// Its place in the order in which the entry's steps took effect, from 0.
    pub place: u32,
    /// The cluster's revision after it took effect.
    pub revision: Revision,
}

/// The final answer for a call that waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The call.
    pub attempt: Attempt,
    /// What it is told; never [`AcquireReply::Queued`].
    pub reply: Placed<AcquireReply>,
}

/// One answer for each kind of command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To an acquire.
    Acquire(AcquireReply),
    /// To a renew, in the order of its leases.
    Renew(Vec<RenewReply>),
    /// To a release.
    Release(ReleaseReply),
    /// To a cancel.
    Cancel(CancelReply),
    /// To a detach.
    Detach(DetachReply),
    /// To an abandon.
    Abandon(AbandonReply),
    /// To a forced release.
    ForceRelease(ForceReleaseReply),
    /// To a takeover.
    TakeOver,
    /// To a policy change.
    SetPolicy(SetPolicyReply),
    /// To a raise of the revision.
    RaiseRevision(RaiseRevisionReply),
    /// To a raise of the feature level: the level in force.
    RaiseFeatureLevel(u32),
}

/// Whether an answer was given before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// This is the first answer of its kind.
    First,
    /// The answer comes from the record of an earlier one.
    Again,
}

/// A lease that is current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The only proof of ownership.
    pub lease_id: LeaseId,
    /// What the protected resource compares.
    pub token: FencingToken,
    /// How long the lease lasts from the entry's instant, in ms; at least 1.
    pub remaining_ms: u64,
    /// The lease's TTL in ms.
    pub ttl_ms: u64,
    /// Whether it was given before.
    pub told: Told,
}

/// The answer to an acquire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireReply {
    /// The resource is the caller's.
    Granted(Grant),
    /// The request waits; its answer follows for the same attempt.
    Queued,
    /// The request has ended, or never began.
    Refused(AcquireRefusal),
}

/// Why an acquire wasn't granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireRefusal {
    /// Somebody else holds the resource, and the request didn't want to wait.
    Held(HeldBy),
    /// The resource is closed for a while, and the request didn't want to wait.
    LockDelay {
        /// How long it stays closed, in ms.
        remaining_ms: u64,
    },
    /// The wait is over.
    TimedOut(Told),
    /// The request was cancelled, or dropped after its client stayed away.
    Cancelled(Told),
    /// A newer call of the same request gets the answer.
    Superseded,
    /// It was granted, and that lease has ended.
    LeaseEnded {
        /// How it ended.
        how: LeaseEnd,
        /// The token that it had.
        token: FencingToken,
    },
    /// The request id belongs to a request with other arguments.
    RequestIdReused,
    /// An argument breaks the policy.
    OutOfPolicy(OutOfPolicy),
    /// Too much of something.
    OverLimit(OverLimit),
}

/// Who stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy {
    /// The owner of the current lease.
    pub holder: Owner,
    /// The current lease's token.
    pub token: FencingToken,
    /// How long the current lease lasts, in ms.
    pub remaining_ms: u64,
    /// How many wait.
    pub queue_length: u64,
}

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// By its holder.
    Released,
    /// By time.
    Expired,
    /// By an operator.
    Forced,
    /// By the leader, since nobody was ever told of it.
    Abandoned,
}

/// A limit of the policy that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverLimit {
    /// Waiters of the resource.
    WaitersOfResource {
        /// The policy's limit.
        max: u64,
    },
    /// Waiters of the namespace.
    WaitersOfNamespace {
        /// The policy's limit.
        max: u64,
    },
    /// Waiters in all.
    Waiters {
        /// The policy's limit.
        max: u64,
    },
    /// Held leases of the namespace.
    LeasesOfNamespace {
        /// The policy's limit.
        max: u64,
    },
    /// Held leases in all.
    Leases {
        /// The policy's limit.
        max: u64,
    },
    /// Remembered outcomes.
    Outcomes {
        /// The policy's limit.
        max: u64,
    },
}

/// Why a proof proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotHolder {
    /// The lease was one's own and has ended.
    Ended(LeaseEnd),
    /// No lease of this resource, current or remembered, has this proof.
    UnknownLease,
    /// The policy takes no owner and token as proof.
    ProofNotAllowed,
}

/// The answer for one lease to renew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewReply {
    /// The lease has its full time again.
    Renewed {
        /// How long it lasts now, in ms.
        remaining_ms: u64,
        /// Whether it can be extended again.
        last: Last,
    },
    /// The lease isn't the caller's.
    NotHolder(NotHolder),
    /// The TTL breaks the policy.
    OutOfPolicy(OutOfPolicy),
}

/// Whether a renewal reached the total-hold limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// The lease can be renewed again.
    No,
    /// The total-hold limit cut it short: no later renewal extends it.
    Final,
}

/// The answer to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseReply {
    /// The lease is over.
    Released(Told),
    /// The lease isn't the caller's, or ended otherwise.
    NotHolder(NotHolder),
}

/// The answer to a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReply {
    /// No grant follows.
    Cancelled(Told),
    /// The grant came first; whoever cancels releases it.
    Granted(Grant),
    /// The grant came first and is over.
    LeaseEnded {
        /// How it ended.
        how: LeaseEnd,
        /// The token that it had.
        token: FencingToken,
    },
    /// The request id belongs to a request for another resource.
    RequestIdReused,
    /// Too many outcomes are remembered to remember this one.
    OverLimit(OverLimit),
}

/// The answer to a detach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DetachReply {
    /// The waiter keeps its place for the waiter grace.
    Detached {
        /// Its place in the queue, from 1.
        position: u64,
    },
    /// The waiter left the queue, since nobody could have come back to it.
    Dropped,
    /// The grant came first.
    Granted(Grant),
    /// The request has ended or has a newer attempt.
    Stale,
}

/// The answer to an abandon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbandonReply {
    /// The lease is over.
    Abandoned,
    /// Somebody came for it, or it is over already.
    Stale,
}

/// The answer to a forced release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForceReleaseReply {
    /// The lease is over.
    Forced {
        /// Who held it.
        owner: Owner,
    },
    /// Another lease is current.
    OtherToken {
        /// The current lease.
        held_by: HeldBy,
    },
    /// Nobody holds the resource.
    NotHeld,
}

/// The answer to a policy change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetPolicyReply {
    /// In force from the entry on.
    Changed,
    /// It was made against a policy that isn't in force any more.
    OtherRevision {
        /// The revision of the policy in force.
        current: Revision,
    },
    /// It can't work.
    Invalid(InvalidPolicy),
}

/// The answer to a raise of the revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaiseRevisionReply {
    /// Every later token is larger than the floor.
    Raised,
    /// It was above the floor already.
    AlreadyAbove,
    /// So little room would be left above the floor that tokens could run out.
    TooHigh {
        /// The highest floor that is taken.
        max: Revision,
    },
}
