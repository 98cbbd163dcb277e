//! `kunci acquire`: waiting, repeating, being interrupted.

use crate::fake::{Fake, Weather};
use crate::support::{finish, kunci, run, signal, until};
use std::time::Duration;
use tokio::time::Instant;

#[test]
fn a_wait_goes_on_with_the_same_request_id_until_the_grant() {
    let fake = Fake::start();
    fake.take();
    let waiting = kunci(&fake, "acquire r --wait 10s").spawn().unwrap();
    until("the call was repeated", || fake.requests("acquire").len() >= 2);
    fake.end_lease("released");
    let ran = finish(waiting);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("waiting for r, number 1 in the queue"), "{ran:?}");
    let asked = fake.requests("acquire");
    assert!(asked.iter().all(|body| body["requestId"] == asked[0]["requestId"]), "{asked:?}");
}

/// C57, C99
#[test]
fn a_wait_ends_when_it_is_over_and_a_try_at_once() {
    let fake = Fake::start();
    fake.take();
    let began_at = Instant::now();
    let ran = run(&mut kunci(&fake, "acquire r --wait 300ms"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("timed_out; use a longer --wait"), "{ran:?}");
    assert!(began_at.elapsed() >= Duration::from_millis(300));
    assert_eq!(run(&mut kunci(&fake, "acquire r --try")).code, Some(1));
    assert_eq!(fake.requests("acquire").last().unwrap()["waitTimeoutMs"], 0);
}

#[test]
fn an_acquire_whose_answer_was_lost_brings_the_same_lease() {
    let fake = Fake::start();
    fake.shower(Weather::AnswerLost, 2);
    let ran = run(&mut kunci(&fake, "acquire r --try --json"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("\"fencingToken\":1"), "{ran:?}");
    let asked = fake.requests("acquire");
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|body| body["requestId"] == asked[0]["requestId"]), "{asked:?}");
}

#[test]
fn a_wait_outlives_a_node_that_restarts_however_long_it_had_been_open() {
    let fake = Fake::start();
    fake.take();
    let waiting = kunci(&fake, "acquire r --patience 350ms").spawn().unwrap();
    until("it waits", || !fake.state().queue.is_empty());
    std::thread::sleep(Duration::from_millis(300));
    fake.set(Weather::Broken);
    std::thread::sleep(Duration::from_millis(50));
    fake.set(Weather::Fine);
    fake.end_lease("released");
    let ran = finish(waiting);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let asked = fake.requests("acquire");
    assert!(
        asked.len() > 1 && asked.iter().all(|body| body["requestId"] == asked[0]["requestId"]),
        "{asked:?}"
    );
}

#[test]
fn each_acquire_has_a_request_id_of_its_own() {
    let fake = Fake::start();
    fake.take();
    for _ in 0..2 {
        run(&mut kunci(&fake, "acquire r --try"));
    }
    let asked = fake.requests("acquire");
    assert_ne!(asked[0]["requestId"], asked[1]["requestId"]);
}

/// C56, C93
#[test]
fn an_interrupted_wait_leaves_nothing_in_the_queue_even_when_the_first_cancels_get_lost() {
    let fake = Fake::start();
    fake.take();
    let waiting = kunci(&fake, "acquire r").spawn().unwrap();
    until("it waits", || !fake.state().queue.is_empty());
    fake.shower(Weather::Broken, 2);
    signal(waiting.id(), "INT");
    let ran = finish(waiting);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(fake.state().queue.is_empty());
    assert!(ran.stdout.is_empty(), "{ran:?}");
}
