//! What an entry says for whoever measures, and the list of what is waited for most.

use kunci_core::LockTable;
use kunci_core::command::{Acquire, Command, Entry, Proof, Release, Renew, Renewal, RequestIdFrom};
use kunci_core::reply::{Applied, LeaseEnd, Span, SpanOf, WaitEnd};
use kunci_types::{
    Attempt, Caller, ClusterTime, LeaseId, LockDelay, Owner, RequestId, ResourceName, Ttl, Wait,
};

struct Locks {
    table: LockTable,
    acquired: u64,
}

impl Locks {
    fn new() -> Self {
        Self { table: LockTable::new(), acquired: 0 }
    }

    fn at(&mut self, ms: u64, command: Command) -> Applied {
        self.table.apply(&Entry::new(ClusterTime::from_ms(ms), vec![command]))
    }

    /// By another owner each time, for 9 s, and waiting for 5 s.
    fn acquire(&mut self, ms: u64, resource: &str) -> Applied {
        self.acquired += 1;
        let owner = Owner::from_log(&format!("w{}", self.acquired));
        let mut lease_id = [0; 16];
        lease_id[..8].copy_from_slice(&self.acquired.to_be_bytes());
        let acquire = Acquire {
            resource: ResourceName::from_log(resource),
            caller: Caller::Unproven(owner.clone()),
            owner,
            request_id: RequestId::from_log("q"),
            request_id_from: RequestIdFrom::Client,
            ttl: Some(Ttl::from_ms(9_000)),
            wait: Wait::UpToMs(5_000),
            lock_delay: LockDelay::from_ms(0),
            metadata: None,
            lease_id: LeaseId::from_bytes(lease_id),
            attempt: Attempt::new(self.acquired),
        };
        self.at(ms, Command::Acquire(acquire))
    }

    fn renew(&mut self, ms: u64, resource: &str, number: u64) -> u32 {
        let (resource, proof) = (ResourceName::from_log(resource), proof(number));
        let leases = vec![Renewal { resource, proof, ttl: None }];
        self.at(ms, Command::Renew(Renew { leases })).late_renewals
    }
}

fn proof(number: u64) -> Proof {
    let mut lease_id = [0; 16];
    lease_id[..8].copy_from_slice(&number.to_be_bytes());
    Proof::LeaseId(LeaseId::from_bytes(lease_id))
}

#[test]
fn an_entry_says_how_long_what_it_ends_has_lasted() {
    let mut locks = Locks::new();
    assert_eq!(locks.acquire(1_000, "r").spans, []);
    assert_eq!(locks.acquire(2_000, "r").spans, []);
    assert_eq!(locks.acquire(3_000, "r").spans, []);
    let release = Release { resource: ResourceName::from_log("r"), proof: proof(1) };
    let released = locks.at(4_500, Command::Release(release));
    let span = |ms, of| Span { ms, of };
    let held = span(3_500, SpanOf::Lease(LeaseEnd::Released));
    assert_eq!(released.spans, [held, span(2_500, SpanOf::Wait(WaitEnd::Granted))]);
    let later = locks.acquire(20_000, "other");
    let waited = span(17_000, SpanOf::Wait(WaitEnd::TimedOut));
    assert_eq!(later.spans, [waited, span(15_500, SpanOf::Lease(LeaseEnd::Expired))]);
}

#[test]
fn a_renewal_is_late_with_less_than_a_third_of_its_time_left() {
    let mut locks = Locks::new();
    locks.acquire(0, "r");
    assert_eq!(locks.renew(3_000, "r", 1), 0);
    assert_eq!(locks.renew(9_000, "r", 1), 0, "exactly a third is left");
    assert_eq!(locks.renew(15_001, "r", 1), 1);
    assert_eq!(locks.renew(24_500, "r", 1), 1, "a renewal comes before time in its entry");
}

#[test]
fn the_hottest_are_those_with_the_longest_queues_whatever_is_asked_for() {
    let mut locks = Locks::new();
    let lengths = [3, 0, 5, 1, 5, 2, 0, 4, 1, 3];
    for (number, length) in lengths.iter().enumerate() {
        (0..=*length).for_each(|_| drop(locks.acquire(0, &format!("r{number}"))));
    }
    let mut expected: Vec<_> = lengths.iter().zip(0..).filter(|(length, _)| **length > 0).collect();
    expected.sort_by_key(|(length, number)| (std::cmp::Reverse(**length), *number));
    assert_eq!(locks.table.contended_count(), u64::try_from(expected.len()).unwrap());
    for limit in [0, 1, 2, 3, 7, 8, 100] {
        let hottest: Vec<_> =
            locks.table.hot(limit).iter().map(|listed| listed.resource.to_string()).collect();
        let wanted: Vec<_> = expected.iter().take(limit).map(|(_, number)| format!("r{number}")).collect();
        assert_eq!(hottest, wanted, "{limit}");
    }
}
