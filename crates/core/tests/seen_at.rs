//! What readers see between two entries.

use kunci_core::LockTable;
use kunci_core::command::{Acquire, Command, Entry, RequestIdFrom};
use kunci_core::view::Status;
use kunci_types::{
    Attempt, Caller, ClusterTime, LeaseId, LockDelay, Owner, RequestId, ResourceName, Ttl, Wait,
};

fn acquire(owner: &str, number: u8) -> Command {
    let owner = Owner::from_log(owner);
    Command::Acquire(Acquire {
        resource: ResourceName::from_log("r"),
        caller: Caller::Unproven(owner.clone()),
        owner,
        request_id: RequestId::from_log("q"),
        request_id_from: RequestIdFrom::Client,
        ttl: Some(Ttl::from_ms(10_000)),
        wait: Wait::UpToMs(60_000),
        lock_delay: LockDelay::from_ms(0),
        metadata: None,
        lease_id: LeaseId::from_bytes([number; 16]),
        attempt: Attempt::new(number.into()),
    })
}

/// Case C21: between two entries the time left falls, and never below nothing.
#[test]
fn time_goes_on_between_two_entries() {
    let resource = ResourceName::from_log("r");
    let mut table = LockTable::new();
    table.apply(&Entry::new(ClusterTime::from_ms(100), vec![acquire("a", 1), acquire("b", 2)]));
    let seen = |ms: u64| {
        let view = table.seen_at(ClusterTime::from_ms(ms));
        let Status::Held(held) = view.status(&resource) else { return None };
        let waiter = view.queue(&resource).pop()?;
        assert_eq!(view.list("", None, 10)[0].status, view.hot(10)[0].status);
        assert_eq!(view.expiring(10)[0].status, view.hot(10)[0].status);
        Some((held.remaining_ms, held.held_ms, waiter.waited_ms, waiter.wait_remaining_ms))
    };

    assert_eq!(seen(100), Some((10_000, 0, 0, 60_000)));
    assert_eq!(seen(900), Some((9_200, 800, 800, 59_200)));
    assert_eq!(seen(50_100), Some((0, 50_000, 50_000, 10_000)), "due, and not yet ended by an entry");
    assert_eq!(seen(0), Some((10_000, 0, 0, 60_000)), "a clock behind the log changes nothing");
}
