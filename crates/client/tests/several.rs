//! Several locks at once.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake;

use fake::{A, Fake, Fate, Weather};
use kunci_api::native::{Op, Request};
use kunci_client::{Client, ErrorKind, Loss};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn resources(fake: &Fake, op: Op) -> Vec<String> {
    let seen = &fake.world().seen;
    let of_op = seen.iter().filter(|seen| seen.request.subject().op == op);
    of_op.map(|seen| seen.request.subject().key.unwrap().to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn locks_are_taken_by_name_and_released_in_reverse() {
    let fake = Fake::three();
    let client = fake.client().await;
    let locks = client.locks(["c", "a", "b", "a"]).ttl(s(10)).acquire().await.unwrap();
    assert_eq!(resources(&fake, Op::Acquire).last().unwrap(), "c");
    let names: Vec<_> = locks.iter().map(|lock| lock.resource().as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(locks.get("b").is_some() && locks.get("x").is_none());
    sleep(s(60)).await;
    assert_eq!(locks.check(), Ok(()));
    locks.release().await.unwrap();
    assert_eq!(resources(&fake, Op::Release), ["c", "b", "a"]);
}

/// C85: one can't be had in time: those that were taken are free again, and nothing is renewed.
#[tokio::test(start_paused = true)]
async fn when_one_cannot_be_had_none_is_kept() {
    let fake = Fake::three();
    fake.taken_by_another("r3", s(600));
    let client = fake.client().await;
    let began_at = Instant::now();
    let error = client.locks(["r1", "r2", "r3"]).wait(s(10)).acquire().await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::TimedOut);
    assert!(began_at.elapsed() < s(11), "one deadline for all: {:?}", began_at.elapsed());
    assert_eq!((fake.holder("r1"), fake.holder("r2")), (None, None));
    assert_eq!(resources(&fake, Op::Release), ["r2", "r1"]);
    let renewals = fake.count(Op::Renew);
    sleep(s(60)).await;
    assert_eq!(fake.count(Op::Renew), renewals, "no renewer remains");

    let error = client.locks(["r1", "r3"]).try_acquire().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Held { .. }));
    assert_eq!(fake.holder("r1"), None);
}

/// C85: given up in the middle, and with a lost answer: the one that nobody heard of is cleaned up by its request id.
#[tokio::test(start_paused = true)]
async fn given_up_in_the_middle_nothing_is_left_behind() {
    let fake = Fake::three();
    fake.taken_by_another("r3", s(20));
    let client = fake.client().await;
    let dropped = timeout(s(5), client.locks(["r1", "r2", "r3"]).acquire()).await;
    assert!(dropped.is_err());
    fake.until("given back", |fake| fake.holder("r1").is_none() && fake.holder("r2").is_none()).await;
    sleep(s(60)).await;
    assert_eq!(fake.world().table.held(), 0);

    fake.next(Op::Acquire, Fate::AnswerSwallowed);
    let dropped = timeout(s(1), client.locks(["r1", "r2"]).acquire()).await;
    assert!(dropped.is_err());
    fake.until("given back", |fake| fake.world().table.held() == 0).await;
    let cancelled = fake.world().seen.iter().any(|seen| matches!(seen.request, Request::Cancel { .. }));
    assert!(cancelled);
}

/// C85: two who want the same in opposite order never wait for each other.
#[tokio::test(start_paused = true)]
async fn opposite_orders_do_not_block_each_other() {
    let fake = Fake::three();
    let (one, other) = (fake.client().await, fake.client().await);
    let rounds = |client: Client, names: [&'static str; 2]| async move {
        for _ in 0..50 {
            let locks = client.locks(names).wait(s(30)).acquire().await.unwrap();
            sleep(Duration::from_millis(10)).await;
            locks.release().await.unwrap();
        }
    };
    tokio::join!(rounds(one, ["x", "y"]), rounds(other, ["y", "x"]));
    assert_eq!(fake.world().table.held(), 0);
}

/// One that is lost while others are waited for makes the whole thing fail at once.
#[tokio::test(start_paused = true)]
async fn a_loss_while_waiting_for_the_others_is_said_at_once() {
    let fake = Fake::three();
    fake.taken_by_another("r2", s(3_600));
    let client = fake.client().await;
    let acquiring = tokio::spawn(client.locks(["r1", "r2"]).ttl(s(6)).acquire());
    fake.until("the first is held", |fake| fake.holder("r1").is_some()).await;
    fake.end("r1", "forced");
    let error = timeout(s(5), acquiring).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Lost(Loss::Ended(_))), "{error:?}");
    fake.until("the queue is left", |fake| fake.waiters("r2").is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_at_fault_is_found_before_anything_is_taken() {
    let fake = Fake::one();
    fake.weather(A, Weather::Fine);
    let client = fake.client().await;
    let error = client.locks(["a", " b"]).acquire().await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Invalid);
    assert_eq!(fake.count(Op::Acquire), 0);
}
