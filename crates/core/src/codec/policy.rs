//! The bytes of the policy.

use super::{DecodeError, Reader, Writer};
use kunci_types::Policy;

pub(crate) fn write(writer: &mut Writer, policy: &Policy) {
    for number in [
        policy.ttl_ms_min,
        policy.ttl_ms_max,
        policy.ttl_ms_default,
        policy.total_hold_ms_max,
        policy.wait_ms_max,
        policy.lock_delay_ms_max,
        policy.retry_window_ms,
        policy.outcomes_max,
        policy.waiters_per_resource_max,
        policy.waiters_per_namespace_max,
        policy.waiters_max,
        policy.leases_per_namespace_max,
        policy.leases_max,
        policy.waiter_grace_ms,
        policy.failover_grace_ms,
        u64::from(policy.owner_token_proof),
    ] {
        writer.u64(number);
    }
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Policy, DecodeError> {
    // The fields are read in the order in which they stand here, which is that of `write`.
    let mut next = || reader.u64("policy");
    Ok(Policy {
        ttl_ms_min: next()?,
        ttl_ms_max: next()?,
        ttl_ms_default: next()?,
        total_hold_ms_max: next()?,
        wait_ms_max: next()?,
        lock_delay_ms_max: next()?,
        retry_window_ms: next()?,
        outcomes_max: next()?,
        waiters_per_resource_max: next()?,
        waiters_per_namespace_max: next()?,
        waiters_max: next()?,
        leases_per_namespace_max: next()?,
        leases_max: next()?,
        waiter_grace_ms: next()?,
        failover_grace_ms: next()?,
        owner_token_proof: match next()? {
            0 => false,
            1 => true,
            found => return Err(DecodeError::Meaningless { what: "owner-token proof", found }),
        },
    })
}
