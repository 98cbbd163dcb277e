//! The replicated limits, and what breaks them.
//!
//! Owns: each limit's default, and which policies make sense. Never: a node's own setting.

use crate::time::{LockDelay, Ttl, Wait};

/// The limits that every replica applies alike; changed only by a command in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Shortest lease, in ms.
    pub ttl_ms_min: u64,
    /// Longest lease, in ms.
    pub ttl_ms_max: u64,
    /// The lease given when a caller names none, in ms.
    pub ttl_ms_default: u64,
    /// How long one lease may be renewed, counted from its grant, in ms.
    pub total_hold_ms_max: u64,
    /// Longest wait, in ms.
    pub wait_ms_max: u64,
    /// Longest lock-delay, in ms.
    pub lock_delay_ms_max: u64,
    /// How long the outcome of an ended request is remembered, in ms.
    pub retry_window_ms: u64,
    /// How many outcomes are remembered at most.
    pub outcomes_max: u64,
    /// Waiters of one resource.
    pub waiters_per_resource_max: u64,
    /// Waiters of one namespace.
    pub waiters_per_namespace_max: u64,
    /// Waiters in all.
    pub waiters_max: u64,
    /// Held leases of one namespace.
    pub leases_per_namespace_max: u64,
    /// Held leases in all.
    pub leases_max: u64,
    /// How long a detached waiter keeps its place, and an unseen grant its lease, in ms.
    pub waiter_grace_ms: u64,
    /// The least time that a new leader gives a lease, in ms (or the lease's TTL, when that is smaller).
    pub failover_grace_ms: u64,
    /// Whether owner and token prove ownership too; for trusted networks only.
    pub owner_token_proof: bool,
}

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
/// The longest interval that any policy may name; keeps every sum of times far from overflow.
const INTERVAL_MS_MAX: u64 = 366 * 24 * HOUR_MS;
/// The most of anything that any policy may name.
const COUNT_MAX: u64 = 1 << 32;

impl Default for Policy {
    fn default() -> Self {
        Self {
            ttl_ms_min: SECOND_MS,
            ttl_ms_max: HOUR_MS,
            ttl_ms_default: 30 * SECOND_MS,
            total_hold_ms_max: 24 * HOUR_MS,
            wait_ms_max: HOUR_MS,
            lock_delay_ms_max: MINUTE_MS,
            retry_window_ms: 2 * MINUTE_MS,
            outcomes_max: 8_000_000,
            waiters_per_resource_max: 1_024,
            waiters_per_namespace_max: 65_536,
            waiters_max: 262_144,
            leases_per_namespace_max: 1_000_000,
            leases_max: 2_000_000,
            waiter_grace_ms: 10 * SECOND_MS,
            failover_grace_ms: 10 * SECOND_MS,
            owner_token_proof: true,
        }
    }
}

/// A value that the policy doesn't allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} of {found_ms} ms is out of policy: expected {min_ms} to {max_ms} ms")]
pub struct OutOfPolicy {
    /// What the value is.
    pub what: &'static str,
    /// What was asked for, in ms.
    pub found_ms: u64,
    /// The least that is allowed, in ms.
    pub min_ms: u64,
    /// The most that is allowed, in ms.
    pub max_ms: u64,
}

/// A policy that can't work, and which of its fields is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy field {field} is {found}: expected {min} to {max}")]
pub struct InvalidPolicy {
    /// The field's name, as in [`Policy`].
    pub field: &'static str,
    /// Its value.
    pub found: u64,
    /// The least that works.
    pub min: u64,
    /// The most that works.
    pub max: u64,
}

impl Policy {
    /// Checks a lease's TTL.
    pub fn check_ttl(&self, ttl: Ttl) -> Result<(), OutOfPolicy> {
        within("lease duration", ttl.as_ms(), self.ttl_ms_min, self.ttl_ms_max)
    }

    /// Checks how long a request would wait.
    pub fn check_wait(&self, wait: Wait) -> Result<(), OutOfPolicy> {
        match wait {
            Wait::Try => Ok(()),
            Wait::UpToMs(ms) => within("wait", ms, 1, self.wait_ms_max),
        }
    }

    /// Checks a lock-delay.
    pub fn check_lock_delay(&self, delay: LockDelay) -> Result<(), OutOfPolicy> {
        within("lock-delay", delay.as_ms(), 0, self.lock_delay_ms_max)
    }

    /// Checks that the limits can work together.
    pub fn check(&self) -> Result<(), InvalidPolicy> {
        let intervals = [
            ("ttl_ms_min", self.ttl_ms_min, 1, INTERVAL_MS_MAX),
            ("ttl_ms_max", self.ttl_ms_max, self.ttl_ms_min, INTERVAL_MS_MAX),
            ("ttl_ms_default", self.ttl_ms_default, self.ttl_ms_min, self.ttl_ms_max),
            ("total_hold_ms_max", self.total_hold_ms_max, self.ttl_ms_max, INTERVAL_MS_MAX),
            ("wait_ms_max", self.wait_ms_max, 1, INTERVAL_MS_MAX),
            ("lock_delay_ms_max", self.lock_delay_ms_max, 0, INTERVAL_MS_MAX),
            // A retry that comes after the window acts anew, so a window of nothing would break S5.
            ("retry_window_ms", self.retry_window_ms, 10 * SECOND_MS, INTERVAL_MS_MAX),
            ("waiter_grace_ms", self.waiter_grace_ms, 1, INTERVAL_MS_MAX),
            ("failover_grace_ms", self.failover_grace_ms, 0, INTERVAL_MS_MAX),
        ];
        let counts = [
            ("outcomes_max", self.outcomes_max, 1, COUNT_MAX),
            ("waiters_per_resource_max", self.waiters_per_resource_max, 0, COUNT_MAX),
            ("waiters_per_namespace_max", self.waiters_per_namespace_max, 0, COUNT_MAX),
            ("waiters_max", self.waiters_max, 0, COUNT_MAX),
            ("leases_per_namespace_max", self.leases_per_namespace_max, 1, COUNT_MAX),
            ("leases_max", self.leases_max, 1, COUNT_MAX),
        ];
        for (field, found, min, max) in intervals.into_iter().chain(counts) {
            if found < min || found > max {
                return Err(InvalidPolicy { field, found, min, max });
            }
        }
        Ok(())
    }
}

fn within(what: &'static str, found_ms: u64, min_ms: u64, max_ms: u64) -> Result<(), OutOfPolicy> {
    if found_ms < min_ms || found_ms > max_ms {
        return Err(OutOfPolicy { what, found_ms, min_ms, max_ms });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_policy_works() {
        assert_eq!(Policy::default().check(), Ok(()));
    }

    #[test]
    fn limits_that_contradict_each_other_are_refused_by_name() {
        let policy = Policy { ttl_ms_min: 5_000, ttl_ms_max: 4_000, ..Policy::default() };
        assert_eq!(policy.check().unwrap_err().field, "ttl_ms_max");
    }

    /// Case C95: no value, however large, wraps or panics.
    #[test]
    fn values_at_the_type_limits_are_refused() {
        let policy = Policy::default();
        for ms in [0, 1, 3_600_001, 1 << 31, 1 << 53, u64::MAX] {
            assert!(policy.check_ttl(Ttl::from_ms(ms)).is_err(), "{ms}");
        }
        assert!(policy.check_wait(Wait::UpToMs(u64::MAX)).is_err());
        assert!(policy.check_lock_delay(LockDelay::from_ms(60_001)).is_err());
    }
}
