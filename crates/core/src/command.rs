//! What can be asked of the locks, as it stands in the log.
//!
//! Owns: the commands and the entry that carries them. Never: decides anything.

use crate::request::RequestKey;
use alloc::vec::Vec;
use kunci_types::{
    Attempt, Caller, ClusterTime, FencingToken, LeaseId, LockDelay, Metadata, Origin, Owner, Policy, Reason,
    RequestId, ResourceName, Revision, Ttl, Wait, WallTime,
};

/// One entry of the log: commands that take effect together, at one instant.
///
/// An entry without commands advances the time and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Cluster time when the leader formed the entry; time never goes back, whatever this says.
    pub now: ClusterTime,
    /// The commands in order of arrival.
    pub commands: Vec<Command>,
    /// What the audit log needs besides.
    pub provenance: Provenance,
}

impl Entry {
    /// An entry of which nobody knows where it came from.
    pub fn new(now: ClusterTime, commands: Vec<Command>) -> Self {
        Self { now, commands, provenance: Provenance::default() }
    }
}

/// When and from where an entry came, for the audit log. It decides nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    wall: Option<WallTime>,
    /// One for each command, or none at all when nothing is known of any.
    origins: Vec<Origin>,
}

impl Provenance {
    /// What the leader's wall clock showed when it formed the entry, and where each command came from, in their order.
    pub fn new(wall: Option<WallTime>, mut origins: Vec<Origin>) -> Self {
        if origins.iter().all(Origin::is_unknown) {
            origins = Vec::new();
        }
        Self { wall, origins }
    }

    /// What the leader's wall clock showed.
    pub fn wall(&self) -> Option<WallTime> {
        self.wall
    }

    /// Where the command at a place came from.
    pub fn origin(&self, at: usize) -> &Origin {
        self.origins.get(at).unwrap_or(&Origin::UNKNOWN)
    }

    pub(crate) fn origins(&self) -> &[Origin] {
        &self.origins
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Take a resource or queue for it.
    Acquire(Acquire),
    /// Set leases back to their full time.
    Renew(Renew),
    /// End a lease by its holder's wish.
    Release(Release),
    /// Leave the queue, or make sure that a request never enters it.
    Cancel(Cancel),
    /// The call of a waiter has gone away.
    Detach(Detach),
    /// A grant that nobody was told of, and nobody came to ask for.
    Abandon(Abandon),
    /// End a lease by an operator's wish.
    ForceRelease(ForceRelease),
    /// A leader begins its term.
    TakeOver,
    /// Change the limits.
    SetPolicy(SetPolicy),
    /// Make every later token larger than a floor.
    RaiseRevision(RaiseRevision),
    /// Allow commands that earlier releases don't know.
    RaiseFeatureLevel(RaiseFeatureLevel),
}

impl Command {
    /// The feature level at which every member knows this command.
    pub const fn feature_level(&self) -> u32 {
        match self {
            Self::Acquire(_)
            | Self::Renew(_)
            | Self::Release(_)
            | Self::Cancel(_)
            | Self::Detach(_)
            | Self::Abandon(_)
            | Self::ForceRelease(_)
            | Self::TakeOver
            | Self::SetPolicy(_)
            | Self::RaiseRevision(_)
            | Self::RaiseFeatureLevel(_) => 1,
        }
    }
}

/// Take a resource, or queue for it. The same request id again is the same request, and returns a detached
/// waiter to its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquire {
    /// What to lock.
    pub resource: ResourceName,
    /// Whose request id it is.
    pub caller: Caller,
    /// Who will be shown as the holder.
    pub owner: Owner,
    /// Names the request, so that a retry has one effect.
    pub request_id: RequestId,
    /// Who chose the request id.
    pub request_id_from: RequestIdFrom,
    /// How long the lease lasts; the policy's default when nothing is said.
    pub ttl: Option<Ttl>,
    /// What to do when the resource isn't free.
    pub wait: Wait,
    /// How long the resource stays closed should this lease expire or be forced.
    pub lock_delay: LockDelay,
    /// Shown to whoever may read the lock.
    pub metadata: Option<Metadata>,
    /// The lease's id, should this be granted; drawn by the proposer from the system's CSPRNG.
    pub lease_id: LeaseId,
    /// The call that waits for the answer.
    pub attempt: Attempt,
}

/// Who chose a request id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestIdFrom {
    /// The client, which can come back with it.
    Client,
    /// The server, so nobody can come back with it before the answer.
    Server,
}

/// What is shown to prove that a lease is one's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The lease id.
    LeaseId(LeaseId),
    /// Owner and token, where the policy allows it, and only by the caller that acquired.
    OwnerToken {
        /// Who asks.
        caller: Caller,
        /// The owner that the lease is held by.
        owner: Owner,
        /// The lease's token.
        token: FencingToken,
    },
}

/// Set leases back to their full time, each on its own account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renew {
    /// The leases, in the order of the answers.
    pub leases: Vec<Renewal>,
}

/// One lease to renew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The resource that the lease is on.
    pub resource: ResourceName,
    /// That the lease is one's own.
    pub proof: Proof,
    /// The lease's TTL from now on; as before when nothing is said.
    pub ttl: Option<Ttl>,
}

/// End a lease by its holder's wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The resource that the lease is on.
    pub resource: ResourceName,
    /// That the lease is one's own.
    pub proof: Proof,
}

/// Leave the queue, or make sure that a request that isn't here yet never enters it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// The resource that the request is for.
    pub resource: ResourceName,
    /// Whose request id it is.
    pub caller: Caller,
    /// The request.
    pub request_id: RequestId,
}

/// The call of a waiter has gone away. Changes nothing once the request has a newer attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detach {
    /// The request that waits.
    pub request: RequestKey,
    /// The call that went away.
    pub attempt: Attempt,
    /// Whether the client can come back.
    pub departure: Departure,
}

/// How a waiter's call went away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Without an answer: whoever never learnt the request id can't come back with it.
    Lost,
    /// With an answer that named the request id and asked to come back.
    Told,
}

/// A grant whose answer never went out and that nobody asked for within the waiter grace.
///
/// Changes nothing when the request has a newer attempt, the lease was renewed, or another term has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandon {
    /// The request that was granted.
    pub request: RequestKey,
    /// The call that went away before its answer.
    pub attempt: Attempt,
}

/// End a lease by an operator's wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForceRelease {
    /// The resource to free.
    pub resource: ResourceName,
    /// The lease that is meant, so that a successor can't be hit.
    pub token: FencingToken,
    /// Why; kept with the event.
    pub reason: Reason,
}

/// Change the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetPolicy {
    /// The revision of the policy that this one replaces.
    pub replaces: Revision,
    /// The new limits.
    pub policy: Policy,
}

/// Make every later revision, and so every later token, larger than a floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaiseRevision {
    /// The floor.
    pub floor: Revision,
}

/// Allow commands that earlier releases don't know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaiseFeatureLevel {
    /// The new level; never lower than the one in force.
    pub level: u32,
}
