//! One replica with real files: what it acknowledges it keeps, and who waits is answered.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]

mod log_store_support;
mod replica_support;

use kunci_core::command::{Acquire, Command, Proof, Release, Renew, Renewal, RequestIdFrom};
use kunci_core::reply::{
    AcquireRefusal, AcquireReply, Grant, LeaseEnd, ReleaseReply, RenewReply, Reply, Told,
};
use kunci_core::view::Status;
use kunci_replica::data_folder::{DataFolder, Expected};
use kunci_replica::log_store::LogOptions;
use kunci_replica::raft_types::{EntryBytes, LogId, Payload};
use kunci_replica::{Call, CallOutcome, Member, Refusal, Replica, ReplicaConfig};
use kunci_types::{Attempt, Caller, LeaseId, LockDelay, Owner, RequestId, ResourceName, Ttl, Wait};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const HOLD: Duration = Duration::from_secs(20);

async fn open(data: &Path) -> Replica {
    replica_support::serving(data).await
}

fn name(text: &str) -> ResourceName {
    ResourceName::parse(text).unwrap()
}

/// An acquire of `r` by `owner` with its own request id, for 30 s.
fn acquire(owner: &str, wait: Wait) -> Acquire {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let owner = Owner::parse(owner).unwrap();
    Acquire {
        resource: name("r"),
        caller: Caller::Unproven(owner.clone()),
        request_id: RequestId::parse(owner.as_str()).unwrap(),
        owner,
        request_id_from: RequestIdFrom::Client,
        ttl: Some(Ttl::from_ms(30_000)),
        wait,
        lock_delay: LockDelay::from_ms(0),
        metadata: None,
        lease_id: LeaseId::from_bytes(u128::from(number).to_be_bytes()),
        attempt: Attempt::new(number),
    }
}

async fn final_reply(call: &mut Call) -> AcquireReply {
    match call.answer(HOLD).await.unwrap() {
        CallOutcome::Final(answered) => answered.value,
        CallOutcome::StillQueued(position) => panic!("still queued at {}", position.value),
    }
}

async fn granted(replica: &Replica, acquire: Acquire) -> Grant {
    let mut call = replica.acquire(acquire).await.unwrap();
    let AcquireReply::Granted(grant) = final_reply(&mut call).await else { panic!("not granted") };
    call.delivered();
    grant
}

async fn release(replica: &Replica, grant: Grant) -> ReleaseReply {
    let release = Release { resource: name("r"), proof: Proof::LeaseId(grant.lease_id) };
    match replica.propose(Command::Release(release)).await.unwrap().value {
        Reply::Release(reply) => reply,
        other => panic!("{other:?}"),
    }
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..300 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("15 s passed, and still not: {what}");
}

/// Defends S2, S5: leases, outcomes and the token source outlive the process.
#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let replica = open(data.path()).await;
    let first = granted(&replica, acquire("a", Wait::Try)).await;
    assert_eq!(release(&replica, first).await, ReleaseReply::Released(Told::First));
    let second = granted(&replica, acquire("b", Wait::Try)).await;
    replica.stop().await;
    drop(replica);

    let replica = open(data.path()).await;
    let status = replica.read(|table| table.status(&name("r"))).await.unwrap().value;
    assert!(matches!(status, Status::Held(held) if held.token == second.token));
    assert_eq!(release(&replica, first).await, ReleaseReply::Released(Told::Again));
    assert_eq!(release(&replica, second).await, ReleaseReply::Released(Told::First));
    let third = granted(&replica, acquire("c", Wait::Try)).await;
    assert!(third.token > second.token && second.token > first.token);
    replica.stop().await;
}

/// Defends S2, S5 across a snapshot and the purge of the log behind it.
#[tokio::test]
async fn a_snapshot_carries_on_what_the_log_no_longer_has() {
    let data = tempfile::tempdir().unwrap();
    let replica = open(data.path()).await;
    let held = granted(&replica, acquire("a", Wait::Try)).await;
    replica.trigger_snapshot().await;
    let snapshots = data.path().join("snapshots");
    until("a snapshot file is there", async || {
        std::fs::read_dir(&snapshots).is_ok_and(|files| {
            files.flatten().any(|file| file.file_name().to_string_lossy().ends_with(".kunci"))
        })
    })
    .await;
    replica.stop().await;
    drop(replica);

    let replica = open(data.path()).await;
    let again = granted(&replica, acquire("a", Wait::Try)).await;
    assert_eq!((again.lease_id, again.token, again.told), (held.lease_id, held.token, Told::Again));
    replica.stop().await;
}

/// Defends S6, case C51: a release hands over, and no answer comes before its waiter listens.
#[tokio::test]
async fn a_release_hands_over_to_the_waiting_call() {
    let data = tempfile::tempdir().unwrap();
    let replica = open(data.path()).await;
    let mut held = granted(&replica, acquire("first", Wait::Try)).await;
    for round in 0..50 {
        let mut waiter = replica.acquire(acquire(&format!("w{round}"), Wait::UpToMs(60_000))).await.unwrap();
        assert_eq!(release(&replica, held).await, ReleaseReply::Released(Told::First));
        let AcquireReply::Granted(grant) = final_reply(&mut waiter).await else { panic!("not granted") };
        waiter.delivered();
        assert!(grant.token > held.token);
        held = grant;
    }
    replica.stop().await;
}

/// Defends L3, case C54: a waiter whose call went away is passed over at once.
#[tokio::test]
async fn a_waiter_whose_call_went_away_is_passed_over() {
    let data = tempfile::tempdir().unwrap();
    let replica = open(data.path()).await;
    let held = granted(&replica, acquire("a", Wait::Try)).await;
    let gone = replica.acquire(acquire("b", Wait::UpToMs(60_000))).await.unwrap();
    let mut stays = replica.acquire(acquire("c", Wait::UpToMs(60_000))).await.unwrap();
    drop(gone);
    until("b is detached", async || {
        let queue = replica.read(|table| table.queue(&name("r"))).await.unwrap().value;
        queue.iter().any(|waiter| waiter.owner.as_str() == "b" && !waiter.attached)
    })
    .await;
    release(&replica, held).await;
    assert!(matches!(final_reply(&mut stays).await, AcquireReply::Granted(_)));
    replica.stop().await;
}

/// Contract, section 3: a grant that nobody was told of ends after the waiter grace, as abandoned.
#[tokio::test]
async fn a_grant_that_nobody_saw_is_abandoned_after_the_grace() {
    let data = tempfile::tempdir().unwrap();
    let replica = open(data.path()).await;
    let mut call = replica.acquire(acquire("a", Wait::Try)).await.unwrap();
    assert!(matches!(final_reply(&mut call).await, AcquireReply::Granted(_)));
    drop(call);
    until("the lease is over", async || {
        let status = replica.read(|table| table.status(&name("r"))).await.unwrap().value;
        matches!(status, Status::Free { .. })
    })
    .await;
    let mut again = replica.acquire(acquire("a", Wait::Try)).await.unwrap();
    let ended = final_reply(&mut again).await;
    assert!(
        matches!(ended, AcquireReply::Refused(AcquireRefusal::LeaseEnded { how: LeaseEnd::Abandoned, .. })),
        "{ended:?}"
    );
    replica.stop().await;
}

/// The same, when the client comes back in time: the grant is its own, and stays.
#[tokio::test]
async fn a_client_that_comes_back_in_time_keeps_its_unseen_grant() {
    let data = tempfile::tempdir().unwrap();
    let replica = open(data.path()).await;
    drop(replica.acquire(acquire("a", Wait::Try)).await.unwrap());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let back = granted(&replica, acquire("a", Wait::Try)).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(release(&replica, back).await, ReleaseReply::Released(Told::First));
    replica.stop().await;
}

#[tokio::test]
async fn a_call_that_was_held_long_enough_is_told_its_place_and_detached() {
    let data = tempfile::tempdir().unwrap();
    let replica = open(data.path()).await;
    let held = granted(&replica, acquire("a", Wait::Try)).await;
    let mut call = replica.acquire(acquire("b", Wait::UpToMs(60_000))).await.unwrap();
    let outcome = call.answer(Duration::from_millis(100)).await.unwrap();
    assert!(matches!(&outcome, CallOutcome::StillQueued(position) if position.value == 1), "{outcome:?}");
    release(&replica, held).await;
    // Detached: the resource is free, and the waiter gets it as soon as it is back.
    let back = granted(&replica, acquire("b", Wait::UpToMs(60_000))).await;
    assert_eq!(back.told, Told::First);
    replica.stop().await;
}

#[tokio::test]
async fn stopping_ends_waiting_calls_and_refuses_new_ones() {
    let data = tempfile::tempdir().unwrap();
    let replica = open(data.path()).await;
    granted(&replica, acquire("a", Wait::Try)).await;
    let mut call = replica.acquire(acquire("b", Wait::UpToMs(60_000))).await.unwrap();
    let waiting = tokio::spawn(async move { call.answer(HOLD).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    replica.stop().await;
    assert_eq!(waiting.await.unwrap().unwrap_err(), Refusal::OutcomeUnknown);
    assert_eq!(replica.acquire(acquire("c", Wait::Try)).await.err(), Some(Refusal::NoLeader));
    assert_eq!(replica.read(|_| ()).await.err(), Some(Refusal::NoLeader));
}

/// Defends L1: time alone ends a lease, and the next waiter gets the resource.
#[tokio::test]
async fn a_lease_ends_by_time_and_the_next_waiter_is_granted() {
    let data = tempfile::tempdir().unwrap();
    let replica = open(data.path()).await;
    let short = Acquire { ttl: Some(Ttl::from_ms(1_000)), ..acquire("a", Wait::Try) };
    let held = granted(&replica, short).await;
    let begun = tokio::time::Instant::now();
    let mut waiter = replica.acquire(acquire("b", Wait::UpToMs(10_000))).await.unwrap();
    assert!(matches!(final_reply(&mut waiter).await, AcquireReply::Granted(_)));
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(950) && took < Duration::from_millis(2_000), "{took:?}");
    assert!(matches!(release(&replica, held).await, ReleaseReply::NotHolder(_)));
    replica.stop().await;
}

/// The watch sees each event once, in order, and goes on where it stopped.
#[tokio::test]
async fn events_are_watched_in_order_of_revision() {
    let data = tempfile::tempdir().unwrap();
    let replica = open(data.path()).await;
    let mut watch = replica.watch(None).unwrap();
    let held = granted(&replica, acquire("a", Wait::Try)).await;
    release(&replica, held).await;
    let first = watch.next().await.unwrap().unwrap();
    let second = watch.next().await.unwrap().unwrap();
    assert_eq!(first.revision, held.token.revision());
    assert_eq!(Some(second.revision), first.revision.next());
    let mut later = replica.watch(Some(first.revision)).unwrap();
    assert_eq!(later.next().await.unwrap().unwrap(), second);
    replica.stop().await;
    assert!(later.next().await.is_none());
}

/// Case C132: an entry of a later release stops the node in plain words, before it is skipped.
#[tokio::test]
async fn an_unknown_entry_stops_the_replica_in_plain_words() {
    let data = tempfile::tempdir().unwrap();
    let replica = open(data.path()).await;
    granted(&replica, acquire("a", Wait::Try)).await;
    replica.stop().await;
    drop(replica);
    append_of_a_later_release(data.path()).await;

    let opened = replica_support::alone(ReplicaConfig::new(data.path(), Member::default())).await;
    let why = match opened {
        Ok(replica) => tokio::time::timeout(Duration::from_secs(10), replica.failed()).await.unwrap(),
        Err(error) => error.to_string(),
    };
    assert!(why.contains("command 200, which this kunci doesn't know"), "{why}");
}

/// Appends an entry with command 200 behind what is in the log.
async fn append_of_a_later_release(data: &Path) {
    let folder = DataFolder::open(data, Expected::default()).unwrap();
    let mut log = folder.open_stores(&LogOptions::default()).await.unwrap().log;
    let last = log.last().unwrap().unwrap();
    let mut bytes = vec![kunci_core::ENTRY_FORMAT];
    bytes.extend(0_u64.to_be_bytes());
    bytes.extend(1_u32.to_be_bytes());
    bytes.push(200);
    let mut later = log_store_support::entry(last.index + 1, "");
    later.log_id = LogId { index: last.index + 1, ..last };
    later.payload = Payload::Normal(EntryBytes(bytes.into()));
    log_store_support::append(&mut log, [later]).await.unwrap();
}

/// Case C114 and its kind: beyond its bound the queue refuses at once, and renewals keep their own place.
#[tokio::test]
async fn an_overloaded_node_refuses_at_once_and_still_takes_renewals() {
    let data = tempfile::tempdir().unwrap();
    let replica = open(data.path()).await;
    let held = granted(&replica, acquire("a", Wait::Try)).await;
    let stale = || {
        let proof = Proof::LeaseId(LeaseId::from_bytes([9; 16]));
        Command::Release(Release { resource: name("other"), proof })
    };
    // On this one thread nothing is proposed until all of these have been submitted.
    let flood: Vec<_> = (0..70_000).map(|_| replica.propose(stale())).collect();
    let renewal = Renewal { resource: name("r"), proof: Proof::LeaseId(held.lease_id), ttl: None };
    let renew = replica.propose(Command::Renew(Renew { leases: vec![renewal] }));
    let (flooded, renewed) = futures::future::join(futures::future::join_all(flood), renew).await;

    let refused = flooded.iter().filter(|outcome| **outcome == Err(Refusal::Overloaded)).count();
    let decided = flooded.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!((decided, refused), (65_536, 70_000 - 65_536));
    let renewed = renewed.unwrap().value;
    assert!(
        matches!(&renewed, Reply::Renew(leases) if matches!(leases[..], [RenewReply::Renewed { .. }])),
        "{renewed:?}"
    );
    replica.stop().await;
}
