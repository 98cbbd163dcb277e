//! Every way out: release, drop, close, shutdown; with a server and without.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod fake;

use fake::{A, B, Fake, Fate, Weather};
use kunci_api::native::{Op, Request};
use kunci_client::{Certainty, Client, Ending, ErrorKind, HeldLock, Loss, State};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn hold(client: &Client, ttl: Duration) -> HeldLock {
    client.lock("r").ttl(ttl).acquire().await.unwrap()
}

/// C64: after a release there is no renewal of that lease on the wire, whatever was under way.
#[tokio::test(start_paused = true)]
async fn no_renewal_follows_a_release() {
    let fake = Fake::three();
    let client = fake.client().await;
    for round in 0..1_000_u64 {
        if round % 2 == 0 {
            fake.next(Op::Renew, Fate::Slow(Duration::from_millis(300)));
        }
        let lock = hold(&client, s(1)).await;
        // At once, before the first renewal, while it is under way, and after it.
        sleep(Duration::from_millis(round % 7 * 80)).await;
        lock.release().await.unwrap();
        assert_eq!(fake.holder("r"), None);
        fake.world().fates.clear();
    }
    sleep(s(60)).await;
    let world = fake.world();
    let mut released = std::collections::BTreeSet::new();
    for seen in &world.seen {
        match &seen.request {
            Request::Release { proof, .. } => drop(released.insert(format!("{:?}", lease_of(proof)))),
            Request::Renew { lease_id, .. } => {
                assert!(!released.contains(&format!("{:?}", lease_id.as_bytes())), "renewed after release");
            }
            _ => {}
        }
    }
    assert_eq!(released.len(), 1_000);
}

fn lease_of(proof: &kunci_api::Proof) -> &[u8; 16] {
    match proof {
        kunci_api::Proof::LeaseId(lease_id) => lease_id.as_bytes(),
        kunci_api::Proof::OwnerToken { .. } => panic!("the client proves by lease id"),
    }
}

/// C64: nothing is left running when everything was given back.
#[tokio::test(start_paused = true)]
async fn nothing_is_left_running_when_the_last_handle_is_gone() {
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    {
        let fake = Fake::three();
        let client = fake.client().await;
        let lock = hold(&client, s(10)).await;
        let other = client.lock("q").acquire().await.unwrap();
        drop(client);
        sleep(s(60)).await;
        assert_eq!(
            (lock.state(), other.state()),
            (State::Held, State::Held),
            "handles aren't needed to hold"
        );
        lock.release().await.unwrap();
        drop(other);
        fake.until("released", |fake| fake.world().table.held() == 0).await;
    }
    sleep(s(30)).await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), before);
}

/// C68: a dead server costs a release 5 s and no more; a known loss costs nothing.
#[tokio::test(start_paused = true)]
async fn a_release_ends_within_its_budget_whatever_the_server_does() {
    for weather in [Weather::Refused, Weather::Mute, Weather::Blackhole, Weather::Refuses("no_quorum")] {
        let fake = Fake::one();
        let client = fake.client().await;
        let lock = hold(&client, s(60)).await;
        fake.weather(A, weather.clone());
        if weather == Weather::Refused {
            fake.cut(A);
        }
        let began_at = Instant::now();
        let error = lock.release().await.unwrap_err();
        assert!(
            began_at.elapsed() <= Duration::from_millis(5_010),
            "{:?} at {weather:?}",
            began_at.elapsed()
        );
        assert!(
            matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Unavailable(_)),
            "{error:?} at {weather:?}"
        );

        let began_at = Instant::now();
        client.close().await;
        drop(client);
        assert!(began_at.elapsed() <= s(5), "closed after {:?}", began_at.elapsed());
    }
}

/// C68: with a renewal stuck on its way, too.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_stuck_holds_up_no_release() {
    let fake = Fake::three();
    let client = fake.client().await;
    let lock = hold(&client, s(30)).await;
    fake.next(Op::Renew, Fate::AnswerSwallowed);
    fake.until("a renewal is on its way", |fake| fake.count(Op::Renew) == 1).await;
    let began_at = Instant::now();
    lock.release().await.unwrap();
    assert!(began_at.elapsed() < Duration::from_millis(50), "{:?}", began_at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn after_a_known_loss_a_release_returns_at_once() {
    let fake = Fake::three();
    let client = fake.client().await;
    let lock = hold(&client, s(5)).await;
    fake.end("r", "forced");
    lock.lost().await;
    let began_at = Instant::now();
    let error = lock.release().await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Lost(Loss::Ended(Ending::Forced)));
    assert_eq!(fake.count(Op::Release), 0, "there is nothing to release");

    let lock = hold(&client, s(5)).await;
    fake.all(&Weather::Blackhole);
    assert_eq!(lock.lost().await, Loss::Deadline);
    let error = lock.release().await.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (&ErrorKind::Lost(Loss::Deadline), Certainty::Unknown));
    assert!(began_at.elapsed() < s(6));
}

/// After the own deadline the server may still count the lease as current: it is released, so that others needn't wait.
#[tokio::test(start_paused = true)]
async fn a_lock_that_was_lost_by_its_deadline_is_still_given_back() {
    let fake = Fake::three();
    let client = fake.client().await;
    let lock = hold(&client, s(5)).await;
    fake.all(&Weather::Mute);
    lock.lost().await;
    fake.world().table.final_after = Some(s(600));
    fake.end("r", "expired");
    fake.lead(B);
    drop(lock);
    fake.until("released", |fake| fake.count(Op::Release) == 1).await;
}

/// A lost answer to a release is repeated: `already` is as good.
#[tokio::test(start_paused = true)]
async fn a_release_is_repeated_until_it_is_confirmed() {
    for fate in [Fate::Cut, Fate::AnswerLost, Fate::AnswerSwallowed, Fate::Refused("overloaded")] {
        let fake = Fake::three();
        let client = fake.client().await;
        let lock = hold(&client, s(30)).await;
        fake.next(Op::Release, fate);
        lock.release().await.unwrap();
        assert_eq!(fake.holder("r"), None, "{fate:?}");
    }
}

/// C03: who comes too late is told, and touches nobody else's lock.
#[tokio::test(start_paused = true)]
async fn a_late_release_changes_nothing_and_says_so() {
    let fake = Fake::three();
    let client = fake.client().await;
    let lock = hold(&client, s(30)).await;
    fake.end("r", "expired");
    fake.taken_by_another("r", s(60));
    let error = lock.release().await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Lost(Loss::Ended(Ending::Expired)));
    assert_eq!(fake.holder("r").as_deref(), Some("another"));
}

/// C77: the lock is renewed until the body has ended, and only then released, however long that takes.
#[tokio::test(start_paused = true)]
async fn the_lock_is_kept_until_the_work_under_it_has_ended() {
    let fake = Fake::three();
    let client = fake.client().await;
    let other = fake.builder().owner("other").connect([A, B]).await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let working = {
        let (stop, client) = (stop.clone(), client.clone());
        tokio::spawn(async move {
            let body = async |_: &HeldLock| {
                stop.cancelled().await;
                sleep(s(3)).await;
                Instant::now()
            };
            client.lock("r").ttl(s(1)).with(body).await
        })
    };
    fake.until("held", |fake| fake.holder("r").is_some()).await;
    let next = tokio::spawn(async move { (other.lock("r").acquire().await.unwrap(), Instant::now()) });
    stop.cancel();
    client.close().await;
    let ended_at = working.await.unwrap().unwrap();
    let (_lock, began_at) = next.await.unwrap();
    assert!(began_at >= ended_at, "the next one began before this one had ended");
    assert!(began_at.duration_since(ended_at) < Duration::from_millis(50));
    // A closed client asks for nothing any more.
    let refused = client.lock("q").acquire().await.unwrap_err();
    assert_eq!(refused.kind(), &ErrorKind::Closed);
}

/// What the body returns comes out, whatever becomes of the release.
#[tokio::test(start_paused = true)]
async fn a_failed_release_does_not_hide_what_the_work_returned() {
    let fake = Fake::three();
    let client = fake.client().await;
    let body = async |_: &HeldLock| {
        fake.all(&Weather::Refuses("no_quorum"));
        Err::<(), _>("the work's own error")
    };
    let returned = client.lock("r").with(body).await.unwrap();
    assert_eq!(returned, Err("the work's own error"));
}

/// C81: dropped in a runtime, by aborting its task, and by a panic: released, and the next acquire is served.
#[tokio::test(start_paused = true)]
async fn a_dropped_lock_is_released_in_the_background() {
    let fake = Fake::three();
    let client = fake.client().await;
    let ways: [fn(HeldLock) -> tokio::task::JoinHandle<()>; 3] = [
        |lock| tokio::spawn(async move { drop(lock) }),
        |lock| {
            let task = tokio::spawn(async move {
                let _lock = lock;
                std::future::pending::<()>().await;
            });
            task.abort();
            task
        },
        |lock| {
            tokio::spawn(async move {
                let _lock = lock;
                panic!("on purpose");
            })
        },
    ];
    for way in ways {
        let lock = hold(&client, s(30)).await;
        let token = lock.lost_token();
        let _ = way(lock).await;
        assert!(token.is_cancelled());
        // Straight after: it queues behind the old lease at most.
        let again = timeout(s(1), hold(&client, s(30))).await.expect("served at once");
        again.release().await.unwrap();
    }
}

/// C81: on a plain thread, outside every runtime, unwinding too.
#[test]
fn a_lock_may_be_dropped_on_any_thread() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let fake = Fake::three();
    let client = runtime.block_on(fake.client());
    let lock = runtime.block_on(hold(&client, s(30)));
    std::thread::spawn(move || drop(lock)).join().unwrap();
    runtime.block_on(fake.until("released", |fake| fake.holder("r").is_none()));

    let lock = runtime.block_on(hold(&client, s(30)));
    let unwound = std::thread::spawn(move || {
        let _lock = lock;
        panic!("on purpose");
    });
    unwound.join().unwrap_err();
    runtime.block_on(fake.until("released", |fake| fake.holder("r").is_none()));
}

/// C81: after the runtime is gone nothing can be sent: the lock is known to be lost, and dropping it is quiet.
#[test]
fn a_lock_may_outlive_its_runtime() {
    let renewing =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let fake = Fake::three();
    let client = renewing.block_on(fake.client());
    let lock = renewing.block_on(hold(&client, s(30)));
    let forgotten = renewing.block_on(client.lock("q").acquire()).unwrap();
    std::mem::forget(forgotten);
    // One is dropped by the runtime itself, in a task that it ends.
    let inside = renewing.block_on(client.lock("p").acquire()).unwrap();
    renewing.spawn(async move {
        let _inside = inside;
        std::future::pending::<()>().await;
    });
    let watching = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    renewing.shutdown_background();
    assert_eq!(watching.block_on(lock.lost()), Loss::ClientGone);
    assert_eq!(lock.state(), State::Lost);
    let error = watching.block_on(client.lock("r").acquire()).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Unreachable, "{error}");
    drop(lock);
    watching.block_on(client.close());
    drop(client);
}
