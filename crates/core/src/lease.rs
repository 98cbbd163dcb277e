//! One ownership epoch of one resource.

use crate::reply::{Grant, HeldBy, Told};
use crate::request::{RequestKey, Terms};
use kunci_types::{Attempt, ClusterTime, FencingToken, Ttl};

/// What closes a resource to others.
///
/// The one place to extend for locks that more than one may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    Held(Lease),
    /// A lease ended badly, and its lock-delay runs.
    Closed {
        until: ClusterTime,
    },
}

/// A lease that is current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) request: RequestKey,
    /// `terms.ttl` is the TTL of the last renewal.
    pub(crate) terms: Terms,
    pub(crate) token: FencingToken,
    pub(crate) granted_at: ClusterTime,
    /// The lease has ended once cluster time reaches this.
    pub(crate) until: ClusterTime,
    /// No renewal extends past this.
    pub(crate) hold_until: ClusterTime,
    pub(crate) sight: Sight,
    pub(crate) grace: Grace,
}

/// Whether anybody may know of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Its answer is meant for this call; only the leader of `term` can know that it never went out.
    Meant { attempt: Attempt, term: u64 },
    /// Its holder has been heard of.
    Seen,
}

/// Whether a takeover has extended the lease since its grant or last renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grace {
    Unused,
    Used,
}

impl Lease {
    pub(crate) fn remaining_ms(&self, now: ClusterTime) -> u64 {
        self.until.ms_since(now)
    }

    pub(crate) fn grant(&self, now: ClusterTime, told: Told) -> Grant {
        Grant {
            lease_id: self.terms.lease_id,
            token: self.token,
            remaining_ms: self.remaining_ms(now),
            ttl_ms: self.terms.ttl.as_ms(),
            told,
        }
    }

    pub(crate) fn held_by(&self, now: ClusterTime, queue_length: u64) -> HeldBy {
        HeldBy {
            holder: self.terms.owner.clone(),
            token: self.token,
            remaining_ms: self.remaining_ms(now),
            queue_length,
        }
    }

    /// The end that a renewal to `ttl` asks for, and whether the total-hold limit allows it whole.
    pub(crate) fn renewed_until(&self, now: ClusterTime, ttl: Ttl) -> (ClusterTime, bool) {
        let wanted = now.plus_ms(ttl.as_ms());
        (wanted.min(self.hold_until).max(self.until), wanted <= self.hold_until)
    }
}
