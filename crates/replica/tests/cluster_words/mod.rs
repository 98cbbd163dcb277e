//! What a test says to a cluster: take a lock of its own, and count what is held.

#![allow(dead_code, reason = "each test binary uses its part")]

use kunci_core::LockTable;
use kunci_core::command::{Acquire, RequestIdFrom};
use kunci_core::reply::{AcquireReply, Grant};
use kunci_replica::{CallOutcome, Refusal, Replica};
use kunci_types::{Attempt, Caller, LeaseId, LockDelay, Owner, RequestId, ResourceName, Ttl, Wait};
use std::time::Duration;

pub(crate) fn acquire(number: u64) -> Acquire {
    let owner = Owner::parse("w").unwrap();
    Acquire {
        resource: ResourceName::parse(&format!("r/{number}")).unwrap(),
        caller: Caller::Unproven(owner.clone()),
        owner,
        request_id: RequestId::parse(&number.to_string()).unwrap(),
        request_id_from: RequestIdFrom::Client,
        ttl: Some(Ttl::from_ms(600_000)),
        wait: Wait::Try,
        lock_delay: LockDelay::from_ms(0),
        metadata: None,
        lease_id: LeaseId::from_bytes(u128::from(number + 1).to_be_bytes()),
        attempt: Attempt::new(number),
    }
}

/// One grant of `r/number`, asked once.
pub(crate) async fn grant(replica: &Replica, number: u64) -> Result<Grant, Refusal> {
    let mut call = replica.acquire(acquire(number)).await?;
    let outcome = call.answer(Duration::from_secs(5)).await?;
    call.delivered();
    match outcome {
        CallOutcome::Final(answered) => match answered.value {
            AcquireReply::Granted(grant) => Ok(grant),
            other => panic!("{other:?}"),
        },
        CallOutcome::StillQueued(_) => panic!("queued"),
    }
}

pub(crate) async fn held(replica: &Replica) -> Result<u64, Refusal> {
    replica.read(|_| ()).await?;
    Ok(replica.local_view(LockTable::held_count).value)
}
