//! Renew: set leases back to their full time. Never shortens one, never passes the total-hold limit.

use crate::command::{Renew, Renewal};
use crate::effects::Effects;
use crate::invariants::broken;
use crate::lease::{Grace, Sight};
use crate::reply::{Last, LeaseEnd, NotHolder, RenewReply};
use crate::table::LockTable;
use alloc::vec::Vec;

impl LockTable {
    pub(super) fn renew(&mut self, effects: &mut Effects, renew: &Renew) -> Vec<RenewReply> {
        renew.leases.iter().map(|renewal| self.renew_one(effects, renewal)).collect()
    }

    fn renew_one(&mut self, effects: &mut Effects, renewal: &Renewal) -> RenewReply {
        let now = self.now();
        let lease = match self.prove(&renewal.resource, &renewal.proof) {
            Ok(lease) => lease,
            Err(not_holder) => return RenewReply::NotHolder(not_holder),
        };
        let ttl = renewal.ttl.unwrap_or(lease.terms.ttl);
        if let Err(out_of_policy) = self.state.head.policy.check_ttl(ttl)
            && renewal.ttl.is_some()
        {
            return RenewReply::OutOfPolicy(out_of_policy);
        }
        let before = lease.until;
        // At the total-hold limit little is left however early it comes.
        let is_late = before.ms_since(now) < lease.terms.ttl.as_ms() / 3 && before < lease.hold_until;
        let (until, whole) = lease.renewed_until(now, ttl);
        if until <= now {
            // The total-hold limit was reached: the lease is over, and time ends it in this very entry.
            return RenewReply::NotHolder(NotHolder::Ended(LeaseEnd::Expired));
        }
        let Some(lease) = self.lease_mut(&renewal.resource) else {
            broken("I1: a lease that was proven isn't there");
        };
        lease.terms.ttl = ttl;
        lease.sight = Sight::Seen;
        lease.until = until;
        if whole || until > before {
            // Only a renewal that the total-hold limit left something of makes a later takeover give grace again;
            // otherwise a lease at that limit could live from takeover to takeover.
            lease.grace = Grace::Unused;
        }
        let remaining_ms = lease.remaining_ms(now);
        effects.late_renewals = effects.late_renewals.saturating_add(u32::from(is_late));
        self.move_holding(&renewal.resource, before, until);
        self.check_touched(&renewal.resource);
        RenewReply::Renewed { remaining_ms, last: if whole { Last::No } else { Last::Final } }
    }
}
