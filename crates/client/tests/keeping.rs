//! How held locks are kept: renewals through bad weather, and the loss when there is none.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake;

use fake::{A, B, C, Fake, Fate, Weather};
use futures::future::BoxFuture;
use kunci_api::native::Op;
use kunci_client::{Alarm, Client, Clock, Ending, HeldLock, InDoubt, Loss, Moment, RuntimeClock, State};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn hold(client: &Client, ttl: Duration) -> HeldLock {
    client.lock("r").ttl(ttl).try_acquire().await.unwrap()
}

/// Waits, and fails when the lock is lost meanwhile.
async fn kept(lock: &HeldLock, time: Duration) {
    assert!(timeout(time, lock.lost()).await.is_err(), "lost within {time:?}");
    assert_ne!(lock.state(), State::Lost);
}

/// C82, C65: a lock is held for as long as its holder wants, and nothing but the lease decides.
#[tokio::test(start_paused = true)]
async fn a_lock_is_renewed_for_as_long_as_it_is_held() {
    let fake = Fake::three();
    let client = fake.client().await;
    let lock = hold(&client, s(30)).await;
    kept(&lock, s(3_600)).await;
    assert_eq!((lock.state(), lock.check()), (State::Held, Ok(())));
    let renewals = fake.count(Op::Renew);
    assert!((350..=420).contains(&renewals), "{renewals} renewals in an hour, one each 9 to 10 s");
    lock.release().await.unwrap();
    assert_eq!(fake.holder("r"), None);
}

/// C65: drop-outs of half a TTL, a refusal and a reset end nothing, and the next lock is renewed as well.
#[tokio::test(start_paused = true)]
async fn renewals_go_on_after_every_kind_of_hiccup_and_for_later_locks_too() {
    let fake = Fake::three();
    let client = fake.client().await;
    let lock = hold(&client, s(10)).await;

    fake.all(&Weather::Blackhole);
    sleep(s(5)).await;
    fake.lead(A);
    kept(&lock, s(20)).await;
    for fate in [Fate::Refused("no_leader"), Fate::Cut, Fate::AnswerLost, Fate::AnswerSwallowed] {
        fake.next(Op::Renew, fate);
        kept(&lock, s(10)).await;
        assert_eq!(lock.state(), State::Held, "after {fate:?}");
    }

    fake.end("r", "forced");
    assert_eq!(timeout(s(5), lock.lost()).await.unwrap(), Loss::Ended(Ending::Forced));
    let again = hold(&client, s(10)).await;
    assert!(again.token() > lock.token());
    kept(&again, s(30)).await;
}

/// C67: refused, muted or swallowed: the loss comes by the lock's own deadline, before the server's.
#[tokio::test(start_paused = true)]
async fn the_loss_is_pushed_when_no_server_answers() {
    for weather in [Weather::Refused, Weather::Blackhole, Weather::Mute] {
        let fake = Fake::three();
        let client = fake.client().await;
        let began_at = Instant::now();
        let lock = hold(&client, s(5)).await;
        let token = lock.lost_token();
        fake.all(&weather);
        if weather == Weather::Refused {
            fake.cut_all();
        }

        let mut states = lock.states();
        assert_eq!(states.next().await, Some(State::Held));
        assert_eq!(states.next().await, Some(State::Uncertain), "{weather:?}");
        let doubted = began_at.elapsed();
        assert!((s(1)..s(4)).contains(&doubted), "in doubt after {doubted:?}");
        assert!(matches!(lock.check(), Err(InDoubt::Uncertain { remaining }) if remaining <= s(5) - doubted));
        assert!(!token.is_cancelled());

        assert_eq!(states.next().await, Some(State::Lost));
        let lost = began_at.elapsed();
        // 5 s less 1 % and 20 ms, to the timer's millisecond.
        assert!((Duration::from_millis(4_929)..=Duration::from_millis(4_931)).contains(&lost), "{lost:?}");
        assert_eq!(lock.lost().await, Loss::Deadline);
        assert!(token.is_cancelled());
        assert_eq!(lock.check(), Err(InDoubt::Lost(Loss::Deadline)));
        assert_eq!((states.next().await, lock.remaining()), (None, Duration::ZERO));
    }
}

/// C83: nothing short of the deadline is a loss.
#[tokio::test(start_paused = true)]
async fn one_hiccup_is_neither_a_loss_nor_a_doubt() {
    let fake = Fake::three();
    let client = fake.client().await;
    let lock = hold(&client, s(30)).await;
    let mut states = lock.states();
    assert_eq!(states.next().await, Some(State::Held));
    for fate in [Fate::Refused("overloaded"), Fate::Cut, Fate::AnswerLost] {
        fake.next(Op::Renew, fate);
        assert!(timeout(s(30), states.next()).await.is_err(), "a doubt after {fate:?}");
    }
    fake.lead(B);
    assert!(timeout(s(30), states.next()).await.is_err(), "a doubt after a redirect");

    // An election that takes 5 s while renewals are due.
    sleep(s(5)).await;
    fake.all(&Weather::Refuses("no_leader"));
    sleep(s(15)).await;
    fake.lead(C);
    kept(&lock, s(60)).await;
    assert_eq!(lock.state(), State::Held);
}

/// C18, C79: the leader dies or hangs, and the lease is kept by the others in time.
#[tokio::test(start_paused = true)]
async fn a_lock_outlives_the_node_that_served_it() {
    for weather in [Weather::Refused, Weather::Mute, Weather::Blackhole] {
        let fake = Fake::three();
        let client = fake.client().await;
        let lock = hold(&client, s(6)).await;
        kept(&lock, s(20)).await;
        fake.lead(B);
        fake.weather(A, weather.clone());
        if weather == Weather::Refused {
            fake.cut(A);
        }
        let turned_at = Instant::now();
        fake.until("renewed by B", |fake| {
            fake.world().seen.iter().any(|seen| seen.node == B && seen.when > turned_at)
        })
        .await;
        assert!(turned_at.elapsed() <= s(4), "renewed after {:?}", turned_at.elapsed());
        kept(&lock, s(60)).await;
        assert_eq!(lock.state(), State::Held);
        // C79: the hung node is tried again every 3 s, not before each request.
        let before = fake.world().connects[A];
        sleep(s(30)).await;
        let tries = fake.world().connects[A] - before;
        assert!((5..=10).contains(&tries), "{tries} tries in 30 s at {weather:?}");
    }
}

/// C79 (b): a node that answers and can't serve is left for another one.
#[tokio::test(start_paused = true)]
async fn a_node_without_quorum_is_left_for_the_others() {
    let fake = Fake::three();
    let client = fake.client().await;
    let lock = hold(&client, s(6)).await;
    fake.lead(B);
    fake.weather(A, Weather::Refuses("no_quorum"));
    kept(&lock, s(60)).await;
    assert_eq!(lock.state(), State::Held);
    let of = |node| fake.world().seen.iter().filter(|seen| seen.node == node).count();
    assert!(of(A) < 5, "asked A {} times", of(A));
}

/// C82: connections that come and go have nothing to do with a lease.
#[tokio::test(start_paused = true)]
async fn a_lock_outlives_every_one_of_its_connections() {
    for fake in [Fake::three(), Fake::one()] {
        fake.world().closes_after = Some(s(1));
        let client = fake.client().await;
        let lock = hold(&client, s(6)).await;
        kept(&lock, s(60)).await;
        lock.release().await.unwrap();
        assert_eq!(fake.holder("r"), None);
    }
}

/// C86: the cluster was rebuilt under the same addresses: a loss, and a new lock can be had.
#[tokio::test(start_paused = true)]
async fn a_rebuilt_cluster_is_a_loss_and_then_a_new_beginning() {
    let fake = Fake::three();
    let client = fake.client().await;
    let lock = hold(&client, s(10)).await;
    assert_eq!(client.cluster().as_deref(), Some("one"));
    fake.world().table.wipe();
    fake.world().cluster = "two".to_owned();
    fake.cut_all();

    assert_eq!(timeout(s(5), lock.lost()).await.unwrap(), Loss::Ended(Ending::Unknown));
    let again = client.lock("r").acquire().await.unwrap();
    assert!(again.token() > lock.token());
    assert_eq!(client.cluster().as_deref(), Some("two"));
}

/// A renewal that the hold limit cut short is said at once, and the lock ends at its deadline.
#[tokio::test(start_paused = true)]
async fn the_hold_limit_is_said_before_it_is_reached() {
    let fake = Fake::three();
    let client = fake.client().await;
    let lock = hold(&client, s(9)).await;
    fake.world().table.final_after = Some(s(8));
    fake.until("a final renewal", |_| lock.is_final()).await;
    assert_eq!(lock.state(), State::Held);
    assert!((s(7)..s(8)).contains(&lock.remaining()), "{:?}", lock.remaining());
    let renewals = fake.count(Op::Renew);
    assert_eq!(lock.lost().await, Loss::HoldLimit);
    assert_eq!(fake.count(Op::Renew), renewals, "no renewal after a final one");
}

/// A lock whose value was forgotten is renewed like any other: until the hold limit, and no longer.
#[tokio::test(start_paused = true)]
async fn a_forgotten_lock_is_kept_until_the_hold_limit_and_no_longer() {
    let fake = Fake::three();
    let client = fake.client().await;
    std::mem::forget(hold(&client, s(9)).await);
    sleep(s(3_600)).await;
    assert_eq!(fake.holder("r").as_deref(), Some("me"));
    fake.world().table.final_after = Some(s(8));
    fake.until("it is free again", |fake| fake.holder("r").is_none()).await;
    let renewals = fake.count(Op::Renew);
    sleep(s(60)).await;
    assert_eq!(fake.count(Op::Renew), renewals, "nobody is left to renew");
}

/// Many locks: one task, few writes, no storm after a leader's death.
#[tokio::test(start_paused = true)]
async fn two_thousand_locks_outlive_a_leader_without_a_storm() {
    let fake = Fake::three();
    let client = fake.client().await;
    let mut locks = Vec::new();
    for number in 0..2_000 {
        locks.push(client.lock(format!("r/{number}")).ttl(s(30)).try_acquire().await.unwrap());
    }
    sleep(s(60)).await;
    fake.kill(A);
    sleep(s(2)).await;
    fake.lead(B);
    fake.weather(A, Weather::Refused);
    sleep(s(60)).await;
    assert!(locks.iter().all(|lock| lock.state() == State::Held));
    let renewals = fake.count(Op::Renew);
    // 2,000 locks for 2 min, every 9 to 10 s, is 27,000; redirects and failures come on top.
    assert!((20_000..45_000).contains(&renewals), "{renewals} renewals");
}

/// K11, C20, C77: whatever a holder is cut off from, it knows of its loss before the next one begins.
#[tokio::test(start_paused = true)]
async fn a_holder_knows_of_its_loss_before_the_next_one_begins() {
    for ttl in [s(1), s(5), s(30), s(600)] {
        let fake = Fake::three();
        let client = fake.client().await;
        let other = fake.builder().owner("other").connect([C]).await.unwrap();
        // Cut off at every phase between two renewals.
        for phase in 0..7 {
            let lock = hold(&client, ttl).await;
            sleep(ttl / 3 * 5 + ttl / 20 * phase).await;
            assert_eq!(lock.state(), State::Held);
            fake.world().renewals_vanish = true;
            let next = tokio::spawn(other.lock("r").ttl(ttl).acquire());
            let lost = async {
                lock.lost().await;
                Instant::now()
            };
            let begun = async { (next.await.unwrap().unwrap(), Instant::now()) };
            let (lost_at, (next, began_at)) = tokio::join!(lost, begun);
            let margin = began_at.checked_duration_since(lost_at).unwrap();
            assert!(margin >= Duration::from_millis(15), "only {margin:?} apart with a ttl of {ttl:?}");
            fake.world().renewals_vanish = false;
            next.release().await.unwrap();
        }
    }
}

/// A clock that goes on while everything else is suspended.
#[derive(Clone, Debug)]
struct SuspendableClock {
    runtime: RuntimeClock,
    suspended_for: Arc<watch::Sender<Duration>>,
}

impl Clock for SuspendableClock {
    fn now(&self) -> Moment {
        self.runtime.now().plus(*self.suspended_for.borrow())
    }

    fn alarm(&self) -> Box<dyn Alarm> {
        Box::new(self.clone())
    }
}

impl Alarm for SuspendableClock {
    fn ring_at(&mut self, at: Moment) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut suspends = self.suspended_for.subscribe();
            while self.now() < at {
                tokio::select! {
                    () = sleep(at.since(self.now())) => {}
                    _ = suspends.changed() => {}
                }
            }
        })
    }
}

/// C31: the machine was suspended for longer than a lease. Whoever wakes up knows so before it does anything else.
#[tokio::test(start_paused = true)]
async fn after_a_suspend_the_lock_is_known_to_be_lost_at_once() {
    let suspended_for = Arc::new(watch::Sender::new(Duration::ZERO));
    let clock = SuspendableClock { runtime: RuntimeClock::new(), suspended_for: suspended_for.clone() };
    let fake = Fake::three();
    let client = fake.builder().clock(Arc::new(clock)).connect([A, B, C]).await.unwrap();
    let lock = hold(&client, s(30)).await;
    sleep(s(3)).await;

    suspended_for.send_replace(s(20));
    assert_eq!(lock.state(), State::Uncertain, "in doubt until it is renewed");
    sleep(Duration::from_millis(1)).await;
    assert_eq!(lock.state(), State::Held, "which is done at once");

    suspended_for.send_replace(s(120));
    // Without a chance for any task to run.
    assert_eq!((lock.state(), lock.remaining()), (State::Lost, Duration::ZERO));
    assert_eq!(lock.check(), Err(InDoubt::Lost(Loss::Deadline)));
    let woken_at = Instant::now();
    assert_eq!(lock.lost().await, Loss::Deadline);
    assert!(woken_at.elapsed() < Duration::from_millis(2), "and the loss is pushed");
}
