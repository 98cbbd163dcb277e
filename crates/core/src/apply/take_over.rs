//! Takeover: a leader begins its term. Leases get the failover grace, and waiters time to come back.

use crate::lease::Grace;
use crate::reply::Reply;
use crate::table::LockTable;
use alloc::vec::Vec;
use kunci_types::{ClusterTime, ResourceName};

/// How long a new leader counts every waiter as attached, in ms.
const PRESENCE_MS: u64 = 2_000;

impl LockTable {
    pub(super) fn take_over(&mut self) -> Reply {
        let now = self.now();
        self.state.head.term += 1;
        self.state.head.presence_until = (!self.index.waits.is_empty()).then_some(now.plus_ms(PRESENCE_MS));
        // Only what ends within the grace can need it.
        let grace_ms = self.state.head.policy.failover_grace_ms;
        let horizon = now.plus_ms(grace_ms);
        let ending: Vec<(ClusterTime, ResourceName)> =
            self.index.holdings.iter().take_while(|(at, _)| *at < horizon).cloned().collect();
        for (until, resource) in ending {
            let Some(lease) = self.lease_mut(&resource) else { continue };
            let graced = now.plus_ms(grace_ms.min(lease.terms.ttl.as_ms()));
            #[cfg(kunci_plants)]
            let graced = if crate::planted::is(crate::planted::Bug::GraceWithoutBound) {
                now.plus_ms(3_600_000)
            } else {
                graced
            };
            if lease.grace == Grace::Used || graced <= until {
                continue;
            }
            lease.grace = Grace::Used;
            lease.until = graced;
            self.move_holding(&resource, until, graced);
        }
        Reply::TakeOver
    }
}
