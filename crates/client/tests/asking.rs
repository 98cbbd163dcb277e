//! Acquiring: what a caller gets, and what is left behind when it gets nothing.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake;

use fake::{A, B, C, Fake, Fate, Weather};
use kunci_api::Code;
use kunci_api::native::{Acquire, Op, Request, WaitFor};
use kunci_client::{Certainty, Client, Error, ErrorKind, HeldLock, Retry, State, Status};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn acquires(fake: &Fake) -> Vec<Acquire> {
    let seen = &fake.world().seen;
    let acquires = seen.iter().filter_map(|seen| match &seen.request {
        Request::Acquire(acquire) => Some(acquire.clone()),
        _ => None,
    });
    acquires.collect()
}

fn request_ids(fake: &Fake) -> BTreeSet<String> {
    acquires(fake).into_iter().map(|acquire| acquire.request_id.unwrap().to_string()).collect()
}

fn waits(client: &Client, wait: Duration) -> JoinHandle<Result<HeldLock, Error>> {
    tokio::spawn(client.lock("r").ttl(s(10)).wait(wait).acquire())
}

/// C01: a lease begins with its grant; after a wait it is renewed at once, so that its deadline is sharp.
#[tokio::test(start_paused = true)]
async fn a_lock_that_was_waited_for_is_handed_out_with_all_of_its_time() {
    let fake = Fake::three();
    fake.taken_by_another("r", s(60));
    let client = fake.client().await;
    let began_at = Instant::now();
    let lock = client.lock("r").ttl(s(2)).wait(s(120)).acquire().await.unwrap();
    assert_eq!(began_at.elapsed().as_secs(), 60);
    assert!(lock.remaining() > Duration::from_millis(1_900), "{:?}", lock.remaining());
    assert_eq!(fake.count(Op::Renew), 1, "renewed once, before it was handed out");
    assert_eq!(lock.state(), State::Held);
}

/// C01: the answer to the acquire took long, so that most of the lease may be over.
#[tokio::test(start_paused = true)]
async fn a_grant_whose_answer_was_slow_is_renewed_before_it_is_handed_out() {
    let fake = Fake::three();
    let client = fake.client().await;
    fake.next(Op::Acquire, Fate::Slow(Duration::from_millis(1_500)));
    let lock = client.lock("r").ttl(s(2)).try_acquire().await.unwrap();
    assert_eq!(fake.count(Op::Renew), 1);
    assert!(lock.remaining() > Duration::from_millis(1_900), "{:?}", lock.remaining());
}

/// The answer was lost, and nobody could be reached until most of the lease was over: what is told again is renewed
/// before it is handed out.
#[tokio::test(start_paused = true)]
async fn a_grant_with_little_left_is_renewed_before_it_is_handed_out() {
    let fake = Fake::one();
    let client = fake.client().await;
    fake.next(Op::Acquire, Fate::AnswerSwallowed);
    let acquiring = waits(&client, s(60));
    fake.until("granted", |fake| fake.holder("r").is_some()).await;
    sleep(s(1)).await;
    fake.all(&Weather::Refuses("no_leader"));
    fake.cut(A);
    sleep(s(4)).await;
    fake.weather(A, Weather::Fine);
    let lock = acquiring.await.unwrap().unwrap();
    assert_eq!(lock.token().get(), 1);
    assert!(lock.remaining() > s(9), "{:?}", lock.remaining());
}

/// C57: the wait ends when it should, with an error that can't be taken for a lock.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_in_time_with_an_error() {
    let fake = Fake::three();
    fake.taken_by_another("r", s(3_600));
    let client = fake.client().await;
    for wait in [Duration::from_millis(1), s(45), s(1_800)] {
        let began_at = Instant::now();
        let error = client.lock("r").wait(wait).acquire().await.unwrap_err();
        assert_eq!((error.kind(), error.certainty()), (&ErrorKind::TimedOut, Certainty::NotApplied));
        let waited = began_at.elapsed();
        assert!(waited >= wait && waited < wait + Duration::from_millis(50), "{waited:?} for {wait:?}");
    }
    assert_eq!(fake.waiters("r"), [""; 0]);
}

/// C57: a wait above the policy's is refused, not cut.
#[tokio::test(start_paused = true)]
async fn a_wait_out_of_policy_is_refused() {
    let fake = Fake::three();
    fake.taken_by_another("r", s(60));
    let client = fake.client().await;
    let error = client.lock("r").wait(s(3_601)).acquire().await.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (&ErrorKind::Invalid, Retry::Never));
}

/// C99: to try once, to wait for some time and to wait without limit are three things, and none is a magic number.
#[tokio::test(start_paused = true)]
async fn trying_waiting_and_waiting_without_limit_are_three_things() {
    let fake = Fake::three();
    fake.world().table.wait_max = Some(s(60));
    fake.taken_by_another("r", s(200));
    let client = fake.client().await;

    let error = client.lock("r").try_acquire().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Held { holder, .. } if holder == "another"), "{error:?}");
    let error = client.lock("r").wait(Duration::ZERO).acquire().await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Invalid, "no wait is `try_acquire`");
    let error = client.lock("r").wait(s(5)).acquire().await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::TimedOut);

    // The policy ends each wait after a minute; a wait without limit goes on under new request ids.
    let lock = client.lock("r").acquire().await.unwrap();
    assert_eq!(lock.state(), State::Held);
    let waits: Vec<_> = acquires(&fake).into_iter().map(|acquire| acquire.wait).collect();
    assert_eq!(waits[..2], [WaitFor::Once, WaitFor::UpToMs(5_000)]);
    assert_eq!(waits[2..], [WaitFor::AsLongAsAllowed; 4]);
    assert_eq!(request_ids(&fake).len(), 6, "each has its own");
}

/// C98, C59, C62: the connection of a waiter breaks; it comes back with the same request id and keeps its place.
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_connection_breaks_keeps_its_place() {
    let fake = Fake::three();
    fake.taken_by_another("r", s(40));
    let client = fake.client().await;
    let first = waits(&client, s(300));
    fake.until("the first waits", |fake| fake.waiters("r").len() == 1).await;
    let second = waits(&client, s(300));
    fake.until("the second waits", |fake| fake.waiters("r").len() == 2).await;
    let queue = fake.waiters("r");
    for round in 0..4 {
        if round % 2 == 0 {
            fake.cut(A);
        } else {
            fake.cut_all();
        }
        sleep(s(4)).await;
        assert_eq!(fake.waiters("r"), queue);
    }
    let first = first.await.unwrap().unwrap();
    assert!(!second.is_finished());
    first.release().await.unwrap();
    assert!(second.await.unwrap().unwrap().token().get() > 2);
    assert_eq!(request_ids(&fake).len(), 2);
}

/// C59: the node hangs while a request waits through it; the same request goes on through another.
#[tokio::test(start_paused = true)]
async fn a_waiter_leaves_a_node_that_has_fallen_silent() {
    let fake = Fake::three();
    fake.taken_by_another("r", s(60));
    let client = fake.client().await;
    let waiting = waits(&client, s(300));
    fake.until("it waits", |fake| fake.waiters("r").len() == 1).await;
    fake.lead(B);
    fake.weather(A, Weather::Mute);
    let turned_at = Instant::now();
    fake.until("it asks B", |fake| fake.world().seen.iter().any(|seen| seen.node == B)).await;
    assert!(turned_at.elapsed() < s(6), "within the waiter grace: {:?}", turned_at.elapsed());
    drop(waiting.await.unwrap().unwrap());
    assert_eq!(request_ids(&fake).len(), 1);
}

/// A lost answer is no failure: the same request id brings the same grant. C04's kin.
#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_resolved_by_the_same_request_id() {
    for fate in [Fate::AnswerLost, Fate::AnswerSwallowed, Fate::Cut, Fate::Refused("outcome_unknown")] {
        let fake = Fake::three();
        let client = fake.client().await;
        fake.next(Op::Acquire, fate);
        let lock = client.lock("r").ttl(s(10)).try_acquire().await.unwrap();
        assert_eq!(lock.token().get(), 1, "granted once at {fate:?}");
        assert_eq!(request_ids(&fake).len(), 1);
        lock.release().await.unwrap();
        assert_eq!(fake.holder("r"), None);
    }
}

/// C63, C98: whoever stops waiting isn't granted anything that nobody knows of.
#[tokio::test(start_paused = true)]
async fn a_dropped_acquire_leaves_the_queue() {
    let fake = Fake::three();
    fake.taken_by_another("r", s(60));
    let client = fake.client().await;
    let dropped = timeout(s(5), client.lock("r").acquire()).await;
    assert!(dropped.is_err());
    fake.until("it left the queue", |fake| fake.waiters("r").is_empty()).await;
    let aborted = waits(&client, s(100));
    fake.until("it waits", |fake| fake.waiters("r").len() == 1).await;
    aborted.abort();
    fake.until("it left the queue", |fake| fake.waiters("r").is_empty()).await;
    sleep(s(120)).await;
    assert_eq!(fake.holder("r"), None);
}

/// The grant was on its way when the caller stopped waiting: it is given back.
#[tokio::test(start_paused = true)]
async fn a_grant_that_nobody_waits_for_any_more_is_released() {
    let fake = Fake::three();
    let client = fake.client().await;
    for fate in [Fate::Slow(s(2)), Fate::AnswerSwallowed] {
        fake.next(Op::Acquire, fate);
        let dropped = timeout(s(1), client.lock("r").ttl(s(60)).acquire()).await;
        assert!(dropped.is_err());
        fake.until("granted", |fake| fake.count(Op::Release) > 0 || fake.holder("r").is_some()).await;
        fake.until("given back", |fake| fake.holder("r").is_none()).await;
    }
    assert_eq!(fake.count(Op::Release), 2);
}

/// C72: two waits for one key on one connection: each task gets its own answer.
#[tokio::test(start_paused = true)]
async fn two_waits_for_one_key_on_one_connection_get_their_own_answers() {
    for freed_after_ms in [990, 1_000, 1_010] {
        let fake = Fake::one();
        fake.taken_by_another("r", Duration::from_millis(freed_after_ms));
        let client = fake.client().await;
        let short = waits(&client, s(1));
        let long = waits(&client, s(60));
        let short = short.await.unwrap();
        let long = match short {
            Ok(short) => {
                assert!(!long.is_finished());
                assert_eq!(short.token().get(), 2);
                short.release().await.unwrap();
                long.await.unwrap().unwrap()
            }
            Err(error) => {
                assert_eq!(error.kind(), &ErrorKind::TimedOut);
                long.await.unwrap().unwrap()
            }
        };
        assert_eq!(long.state(), State::Held);
        assert_eq!(fake.world().table.held(), 1, "no grant went astray");
    }
}

/// C72: the one that is given up locally takes nothing with it.
#[tokio::test(start_paused = true)]
async fn giving_up_one_of_two_waits_leaves_the_other() {
    let fake = Fake::one();
    fake.taken_by_another("r", s(20));
    let client = fake.client().await;
    let first = waits(&client, s(60));
    let second = waits(&client, s(60));
    fake.until("both wait", |fake| fake.waiters("r").len() == 2).await;
    first.abort();
    let lock = second.await.unwrap().unwrap();
    assert_eq!(lock.token().get(), 2, "the first grant went to the one who waited");
}

/// C73: whatever goes wrong while acquiring, the body isn't entered and the error comes out.
#[tokio::test(start_paused = true)]
async fn the_body_is_not_entered_without_the_lock() {
    let fake = Fake::three();
    let client = fake.client().await;
    let cases: [(Weather, ErrorKind); 4] = [
        (Weather::Refuses("no_quorum"), ErrorKind::Unavailable(Code::NoQuorum)),
        (Weather::Refuses("over_limit"), ErrorKind::Refused(Code::OverLimit)),
        (Weather::Refuses("a_code_of_the_future"), ErrorKind::Refused(Code::OutcomeUnknown)),
        (Weather::Refused, ErrorKind::Unreachable),
    ];
    for (weather, kind) in cases {
        fake.all(&weather);
        if weather == Weather::Refused {
            fake.cut_all();
        }
        let entered = AtomicBool::new(false);
        let guarded =
            client.lock("r").wait(s(3)).with(async |_| entered.store(true, Ordering::Relaxed)).await;
        assert_eq!(guarded.unwrap_err().kind(), &kind, "{weather:?}");
        assert!(!entered.load(Ordering::Relaxed));
    }
}

/// C73: a name that leads nowhere, and a server that lets nobody in: the error says so, and nothing is entered.
#[tokio::test(start_paused = true)]
async fn whoever_is_not_let_in_is_told_why_and_enters_nothing() {
    for (weather, why) in [(Weather::Unnamed, "failed to lookup"), (Weather::Unauthorized, "unauthorized")] {
        // From the beginning.
        let fake = Fake::three();
        fake.all(&weather);
        let error = fake.builder().connect([A, B, C]).await.unwrap_err();
        assert_eq!((error.kind(), error.certainty()), (&ErrorKind::Unreachable, Certainty::NotApplied));
        assert!([A, B, C, why].iter().all(|part| error.to_string().contains(part)), "{error}");

        // From one moment to the next.
        fake.lead(A);
        let client = fake.client().await;
        fake.all(&weather);
        fake.cut_all();
        sleep(s(4)).await;
        let entered = AtomicBool::new(false);
        let guarded =
            client.lock("r").wait(s(3)).with(async |_| entered.store(true, Ordering::Relaxed)).await;
        let errors = [
            guarded.unwrap_err(),
            client.lock("r").try_acquire().await.unwrap_err(),
            client.locks(["r", "q"]).acquire().await.unwrap_err(),
        ];
        assert!(!entered.load(Ordering::Relaxed));
        for error in errors {
            assert_eq!(error.kind(), &ErrorKind::Unreachable);
            assert!(error.to_string().contains(why), "{error} at {weather:?}");
        }

        // One of three is no error.
        fake.lead(A);
        fake.weather(C, weather);
        let client = fake.client().await;
        client.lock("r").with(async |_| entered.store(true, Ordering::Relaxed)).await.unwrap();
        assert!(entered.load(Ordering::Relaxed));
    }
}

/// C73: the real resolver fails, too.
#[tokio::test]
async fn a_name_that_is_in_no_dns_is_an_error_soon() {
    let began_at = Instant::now();
    let error = Client::connect(["nowhere.invalid:7401"]).await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Unreachable);
    assert!(error.to_string().contains("nowhere.invalid:7401"), "{error}");
    assert!(began_at.elapsed() < s(10), "{:?}", began_at.elapsed());
}

/// C73: the connection breaks in mid-acquire, and no other answers.
#[tokio::test(start_paused = true)]
async fn an_acquire_that_may_have_been_applied_is_never_called_failed() {
    let fake = Fake::one();
    let client = fake.client().await;
    fake.next(Op::Acquire, Fate::AnswerSwallowed);
    let acquiring = tokio::spawn(client.lock("r").acquire());
    fake.until("granted", |fake| fake.holder("r").is_some()).await;
    fake.kill(A);
    let error = acquiring.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (&ErrorKind::Unreachable, Certainty::Unknown));
    // What it may have been granted is given back as soon as the node is there again.
    fake.weather(A, Weather::Fine);
    fake.until("given back", |fake| fake.holder("r").is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn an_acquire_is_unreachable_only_after_as_many_tries_as_connections() {
    let fake = Fake::three();
    let client = fake.client().await;
    fake.all(&Weather::Refused);
    fake.cut_all();
    sleep(Duration::from_millis(2_900)).await;
    let before: usize = fake.world().connects.values().sum();
    let error = client.lock("r").acquire().await.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (&ErrorKind::Unreachable, Certainty::NotApplied));
    let tries = fake.world().connects.values().sum::<usize>() - before;
    assert!(tries >= 3, "{tries} tries");
    fake.lead(C);
    sleep(Duration::from_millis(100)).await;
    drop(client.lock("r").acquire().await.unwrap());
}

/// C73: every server hangs; an acquire that may have been sent ends all the same, and says that it isn't known.
#[tokio::test(start_paused = true)]
async fn an_acquire_ends_when_every_server_hangs() {
    for weather in [Weather::Mute, Weather::Blackhole] {
        let fake = Fake::three();
        let client = fake.client().await;
        fake.all(&weather);
        for request in [client.lock("r"), client.lock("r").wait(s(60))] {
            let began_at = Instant::now();
            let error = request.acquire().await.unwrap_err();
            assert_eq!(error.kind(), &ErrorKind::Unreachable, "{weather:?}");
            assert!(began_at.elapsed() < s(20), "{:?}", began_at.elapsed());
        }
    }
}

/// C79, C122: however many ask, a server that can't be reached is tried a few times a second at most, and all of them
/// are told.
#[tokio::test(start_paused = true)]
async fn many_who_ask_in_vain_are_told_and_make_no_storm() {
    for weather in [Weather::Refused, Weather::Blackhole, Weather::Mute] {
        let fake = Fake::one();
        let client = fake.client().await;
        fake.weather(A, weather.clone());
        fake.cut(A);
        let before = fake.world().connects[A];
        let began_at = Instant::now();
        let asking: Vec<_> = (0..200).map(|_| waits(&client, s(60))).collect();
        for asking in asking {
            let error = asking.await.unwrap().unwrap_err();
            assert_eq!(error.kind(), &ErrorKind::Unreachable);
        }
        let (took, tries) = (began_at.elapsed(), fake.world().connects[A] - before);
        assert!(took <= s(5), "{took:?} at {weather:?}");
        assert!(tries <= 10, "{tries} tries in {took:?} at {weather:?}");
    }
}

/// C18's kin: an election is waited for, with the same request.
#[tokio::test(start_paused = true)]
async fn an_election_is_waited_for() {
    let fake = Fake::three();
    let client = fake.client().await;
    fake.all(&Weather::Refuses("no_leader"));
    let acquiring = tokio::spawn(client.lock("r").acquire());
    sleep(s(3)).await;
    fake.lead(C);
    drop(acquiring.await.unwrap().unwrap());
    assert_eq!(request_ids(&fake).len(), 1);
    // And with patience over, it says so.
    fake.all(&Weather::Refuses("no_leader"));
    let began_at = Instant::now();
    let error = client.lock("q").acquire().await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Unavailable(Code::NoLeader));
    assert!(began_at.elapsed() <= s(5), "{:?}", began_at.elapsed());
}

/// Servers that take a while before they say that they can't decide: each try looks as if it had been a wait, and the
/// caller's own bound holds all the same.
#[tokio::test(start_paused = true)]
async fn slow_refusals_do_not_keep_an_acquire_for_ever() {
    let hesitant = Duration::from_millis(1_500);
    for weather in [Weather::Hesitates("no_quorum", hesitant), Weather::Hesitates("outcome_unknown", s(3))] {
        let fake = Fake::three();
        let client = fake.client().await;
        fake.all(&weather);
        let began_at = Instant::now();
        let tried = timeout(s(60), client.lock("r").try_acquire()).await.unwrap().unwrap_err();
        assert_eq!(tried.certainty(), Certainty::Unknown, "{weather:?}");
        assert!(began_at.elapsed() < s(15), "{:?} at {weather:?}", began_at.elapsed());
        let began_at = Instant::now();
        timeout(s(60), client.lock("r").wait(s(10)).acquire()).await.unwrap().unwrap_err();
        assert!((s(10)..s(25)).contains(&began_at.elapsed()), "{:?} at {weather:?}", began_at.elapsed());
        timeout(s(60), client.status("r")).await.unwrap().unwrap_err();
    }
}

/// C18: the leader has died, and the others haven't noticed it yet: whoever points to a dead leader is a server that was
/// reached, so the next leader is waited for.
#[tokio::test(start_paused = true)]
async fn a_redirect_to_a_dead_leader_is_an_election_that_is_waited_for() {
    let fake = Fake::three();
    let client = fake.client().await;
    drop(client.lock("r").acquire().await.unwrap());
    fake.kill(C);
    fake.kill(A);
    let acquiring = tokio::spawn(client.lock("r").wait(s(10)).acquire());
    sleep(s(1)).await;
    fake.weather(B, Weather::Fine);
    drop(acquiring.await.unwrap().unwrap());
    assert!(request_ids(&fake).len() <= 2, "the same request went on");
}

/// C140: the leader's address is followed wherever it is, and never in a circle.
#[tokio::test(start_paused = true)]
async fn a_leader_is_found_by_redirects_and_a_circle_is_left() {
    let fake = Fake::three();
    fake.lead(C);
    let client = fake.builder().connect([A]).await.unwrap();
    let lock = client.lock("r").ttl(s(6)).acquire().await.unwrap();
    sleep(s(30)).await;
    assert_eq!(lock.state(), State::Held);
    let to_a = fake.world().seen.iter().filter(|seen| seen.node == A).count();
    assert_eq!(to_a, 1, "once it is known, the leader is asked at once");
    lock.release().await.unwrap();

    fake.weather(A, Weather::Follows(B));
    fake.weather(B, Weather::Follows(C));
    fake.weather(C, Weather::Follows(A));
    let before = fake.world().seen.len();
    let error = client.lock("q").acquire().await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Unavailable(Code::NoLeader));
    let asked = fake.world().seen.len() - before;
    assert!((25..=100).contains(&asked), "{asked} requests in 5 s");
}

#[tokio::test(start_paused = true)]
async fn connecting_to_nobody_fails_and_says_where() {
    let fake = Fake::one();
    fake.weather(A, Weather::Refused);
    let error = fake.builder().connect([A]).await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Unreachable);
    assert!(error.to_string().contains(A), "{error}");
    fake.weather(A, Weather::Mute);
    let began_at = Instant::now();
    fake.builder().connect([A]).await.unwrap_err();
    assert!(began_at.elapsed() < s(3));
    for addresses in [&[][..], &["a"], &[":1"], &["a:x"], &["a:70000"]] {
        let error = fake.builder().connect(addresses.to_vec()).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Invalid, "{addresses:?}");
    }
}

/// C70: times that can't work together are refused before anything is asked.
#[tokio::test(start_paused = true)]
async fn times_that_cannot_work_are_refused_before_anything_is_asked() {
    let fake = Fake::one();
    let client = fake.builder().answer_within(s(4)).connect([A]).await.unwrap();
    let refused = [
        client.lock("r").ttl(s(5)).try_acquire().await,
        client.lock("r").ttl(s(30)).renew_every(s(30)).try_acquire().await,
        client.lock("r").ttl(s(30)).renew_every(Duration::ZERO).try_acquire().await,
        client.lock("r").ttl(Duration::from_millis(20)).try_acquire().await,
        client.lock("").try_acquire().await,
        client.lock("r").owner("o".repeat(129)).try_acquire().await,
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().kind(), &ErrorKind::Invalid);
    }
    assert_eq!(fake.count(Op::Acquire), 0);
}

#[tokio::test(start_paused = true)]
async fn status_shows_what_everybody_may_see() {
    let fake = Fake::three();
    let client = fake.client().await;
    assert_eq!(client.status("r").await.unwrap(), Status::Free { lock_delay: None, queue_length: 0 });
    fake.taken_by_another("r", s(60));
    let status = client.status("r").await.unwrap();
    assert!(matches!(status, Status::Held { holder, queue_length: 0, .. } if holder == "another"));
}

/// C57: the last of twenty-one who hold for 2 s each waits its 40 s, and no less.
#[tokio::test(start_paused = true)]
async fn a_long_wait_behind_many_others_is_waited_out() {
    let fake = Fake::three();
    let client = fake.client().await;
    let began_at = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..21 {
        let acquiring = client.lock("r").ttl(s(10)).wait(s(45)).acquire();
        tasks.push(tokio::spawn(async move {
            let lock = acquiring.await.unwrap();
            let got_at = Instant::now();
            sleep(s(2)).await;
            lock.release().await.unwrap();
            got_at
        }));
    }
    let mut last = began_at;
    for task in tasks {
        last = last.max(task.await.unwrap());
    }
    assert_eq!(last.duration_since(began_at).as_secs(), 40);
}

/// C79: a node that accepts and says nothing costs an acquire two seconds, not its whole wait.
#[tokio::test(start_paused = true)]
async fn an_acquire_leaves_a_mute_node_soon() {
    let fake = Fake::three();
    let client = fake.client().await;
    fake.lead(B);
    fake.weather(A, Weather::Mute);
    let began_at = Instant::now();
    let tried = client.lock("r").ttl(s(6)).try_acquire().await.unwrap();
    assert!(began_at.elapsed() <= s(2), "{:?}", began_at.elapsed());
    drop(tried);
    // Once it is known to be mute, it isn't asked again.
    let began_at = Instant::now();
    for _ in 0..20 {
        drop(client.lock("q").ttl(s(6)).acquire().await.unwrap());
    }
    assert!(began_at.elapsed() < Duration::from_millis(100), "{:?}", began_at.elapsed());
}

/// Closing a client ends what waits, on the server too.
#[tokio::test(start_paused = true)]
async fn closing_a_client_ends_its_waits() {
    let fake = Fake::three();
    fake.taken_by_another("r", s(600));
    let client = fake.client().await;
    let waiting = waits(&client, s(500));
    fake.until("it waits", |fake| fake.waiters("r").len() == 1).await;
    let began_at = Instant::now();
    client.close().await;
    assert_eq!(fake.waiters("r"), [""; 0], "closed is closed");
    assert!(began_at.elapsed() < s(1), "{:?}", began_at.elapsed());
    assert_eq!(waiting.await.unwrap().unwrap_err().kind(), &ErrorKind::Closed);
}
