//! What a snapshot costs while the locks go on: time for `apply`, and memory.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(unsafe_code, reason = "an allocator that counts can't be written without")]

use kunci_core::LockTable;
use kunci_core::command::{Acquire, Command, Entry, Proof, Release, RequestIdFrom};
use kunci_core::reply::{AcquireReply, Reply};
use kunci_types::{Attempt, Caller, ClusterTime, LeaseId, LockDelay, Owner, RequestId, ResourceName, Wait};
use rustix::time::{ClockId, clock_gettime};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const HELD: u64 = 100_000;
const ENTRIES: u64 = 2_000;

struct Counting;

static ALLOCATED_BYTES: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED_BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn acquire(number: u64) -> Command {
    let owner = Owner::from_log(&format!("worker-{}", number % 500));
    let mut lease_id = [0; 16];
    lease_id[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    lease_id[8..].copy_from_slice(&number.to_be_bytes());
    Command::Acquire(Acquire {
        resource: ResourceName::from_log(&format!("orders/{}/{number}", number % 97)),
        caller: Caller::Unproven(owner.clone()),
        owner,
        request_id: RequestId::from_log(&format!("{:032x}", u128::from(number) * 0x9e37_79b9_7f4a_7c15)),
        request_id_from: RequestIdFrom::Client,
        ttl: None,
        wait: Wait::Try,
        lock_delay: LockDelay::from_ms(0),
        metadata: None,
        lease_id: LeaseId::from_bytes(lease_id),
        attempt: Attempt::new(number),
    })
}

fn release(number: u64) -> Command {
    let Command::Acquire(acquired) = acquire(number) else { unreachable!("that is what it makes") };
    Command::Release(Release { resource: acquired.resource, proof: Proof::LeaseId(acquired.lease_id) })
}

fn held(count: u64) -> LockTable {
    let mut table = LockTable::new();
    for first in (0..count).step_by(500) {
        let commands = (first..(first + 500).min(count)).map(acquire).collect();
        let applied = table.apply(&Entry::new(ClusterTime::START, commands));
        let granted = |reply: &Reply| matches!(reply, Reply::Acquire(AcquireReply::Granted(_)));
        assert!(applied.replies.iter().all(|reply| granted(&reply.value)));
    }
    table
}

/// Takes a snapshot, serialises it on another thread, and applies entries meanwhile, each of which changes pieces
/// that the snapshot shares. Returns how long taking it took, and the slowest apply.
fn slowest_apply(table: &mut LockTable, round: u64) -> (Duration, Duration) {
    let digest = table.digest();
    let began = worked();
    let snapshot = table.snapshot();
    let taken = worked() - began;
    let writing = std::thread::spawn(move || {
        let bytes: usize = snapshot.chunks().map(|chunk| chunk.len()).sum();
        (bytes, snapshot)
    });
    let mut slowest = Duration::ZERO;
    for entry in 0..ENTRIES {
        // Far apart in the order of names, so that every entry copies other pieces.
        let number = (round * ENTRIES + entry) * 7_919 % HELD;
        let commands = vec![release(number), acquire(HELD + round * ENTRIES + entry)];
        let entry = Entry::new(ClusterTime::START, commands);
        let began = worked();
        table.apply(&entry);
        slowest = slowest.max(worked() - began);
    }
    let (bytes, snapshot) = writing.join().unwrap();
    assert!(bytes > 100 * usize::try_from(HELD).unwrap());
    assert_eq!(snapshot.digest(), digest, "the frozen state doesn't change with the table");
    (taken, slowest)
}

/// How long this thread has had a processor: what others do on the machine doesn't count.
fn worked() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// At 100,000 held resources neither taking a snapshot nor what it makes the next entries copy holds up an apply
/// for more than 5 ms. The best of a few rounds counts, since a cold cache or page isn't the table's doing; a copy
/// of the state would make every round slow.
#[test]
fn a_snapshot_of_100_000_held_resources_never_holds_up_apply_for_5_ms() {
    let mut table = held(HELD);
    let rounds: Vec<(Duration, Duration)> = (0..5).map(|round| slowest_apply(&mut table, round)).collect();
    println!("snapshot and slowest apply: {rounds:?}");
    let limit = Duration::from_millis(5);
    let taken = rounds.iter().map(|(taken, _)| *taken).min().unwrap();
    let slowest = rounds.iter().map(|(_, slowest)| *slowest).min().unwrap();
    assert!(taken < limit, "a snapshot took {taken:?}: expected less than {limit:?}");
    assert!(slowest < limit, "an apply took {slowest:?}: expected less than {limit:?}");
    table.check();
}

/// Taking a snapshot allocates no copy of anything, whatever the size: this doesn't depend on the machine's mood.
#[test]
#[ignore = "counts what the whole process allocates, so it must run alone: `-- --ignored --test-threads=1`"]
fn a_snapshot_allocates_nothing_and_a_lock_costs_about_a_kilobyte() {
    let before = ALLOCATED_BYTES.load(Ordering::Relaxed);
    let mut table = held(HELD);
    let after = ALLOCATED_BYTES.load(Ordering::Relaxed);
    let count = usize::try_from(HELD).unwrap();
    println!("a held resource with its request: {} bytes", (after - before) / count);

    let snapshot = table.snapshot();
    assert_eq!(ALLOCATED_BYTES.load(Ordering::Relaxed), after, "a snapshot shares all");
    drop(snapshot);

    for first in (0..HELD).step_by(500) {
        table.apply(&Entry::new(ClusterTime::START, (first..first + 500).map(release).collect()));
    }
    let ended = ALLOCATED_BYTES.load(Ordering::Relaxed);
    println!("a remembered request: {} bytes", (ended - before) / count);
    table.apply(&Entry::new(ClusterTime::from_ms(200_000), Vec::new()));
    let idle = ALLOCATED_BYTES.load(Ordering::Relaxed);
    println!("with all forgotten: {} bytes in all", idle - before);
    // Cases C14, C121: names that nobody uses any more cost nothing.
    assert!(idle - before < 64 * 1024, "{} bytes are left", idle - before);
}

/// Case C114: how long one entry works that ends many leases at once, and the one that forgets them.
#[test]
#[ignore = "prints a figure for people; nothing depends on it"]
fn many_leases_that_end_together() {
    let mut table = held(HELD);
    for at_ms in [30_000, 200_000] {
        let began = worked();
        let applied = table.apply(&Entry::new(ClusterTime::from_ms(at_ms), Vec::new()));
        println!("{} events at {at_ms} ms: {:?}", applied.events.len(), worked() - began);
    }
    assert_eq!(table.request_count(), 0);
}
