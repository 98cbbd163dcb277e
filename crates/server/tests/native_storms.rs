//! What comes all at once: leases that end together, clients that renew in step, more acquires than are decided.
//!
//! Owns: that live holders feel nothing of it. Three nodes in this process, on real sockets.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod native_support;

use kunci_core::LockTable;
use kunci_replica::Lead;
use native_support::{Client, Node, field, three, until};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Leases that end together.
const DEAD: usize = 20_000;
/// Waiters, on the first of these.
const WAITING: usize = 2_000;
/// Holders that are alive.
const LIVE: usize = 1_000;
/// Seconds that a lease lasts.
const TTL: u64 = 8;
/// Acquires of free resources, one every so often.
const ACQUIRE_EVERY: Duration = Duration::from_millis(2);
/// No live holder and no new acquire waits longer, in a build that isn't optimised and whose three nodes share a machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// All leases that are due have ended so long after.
const ENDED_WITHIN: Duration = Duration::from_secs(5);
/// A connection takes so many requests at a time.
const AT_A_TIME: usize = 2_000;

/// Says all lines, in parts as large as a connection takes, and hears as many answers.
async fn ask_all(client: &mut Client, lines: &[String]) -> Vec<String> {
    let mut answers = Vec::with_capacity(lines.len());
    for part in lines.chunks(AT_A_TIME) {
        client.say(&part.join("\n")).await;
        for _ in part {
            answers.push(client.hear().await);
        }
    }
    answers
}

/// Takes `count` resources; gives the lines that renew them.
async fn take(client: &mut Client, prefix: &str, count: usize) -> Vec<String> {
    let lines: Vec<String> = (0..count).map(|n| format!("A {prefix}/{n} {TTL} try")).collect();
    let granted = ask_all(client, &lines).await;
    // Answers of different resources come in any order.
    let renewals = granted.iter().map(|answer| {
        let key = answer.strip_prefix("A A ").and_then(|rest| rest.split(' ').next());
        format!("N {} {}", key.unwrap_or_else(|| panic!("not granted: {answer}")), field(answer, "lease"))
    });
    renewals.collect()
}

async fn renew(client: &mut Client, renewals: &[String]) {
    for answer in ask_all(client, renewals).await {
        assert!(answer.starts_with("N N "), "a live holder lost its lease: {answer}");
    }
}

/// Renews in step, all at once every second, until it is stopped. Gives the longest that it took.
fn keep_alive(mut client: Client, renewals: Vec<String>, stop: CancellationToken) -> JoinHandle<Duration> {
    tokio::spawn(async move {
        let mut longest = Duration::ZERO;
        while !stop.is_cancelled() {
            let began = Instant::now();
            renew(&mut client, &renewals).await;
            longest = longest.max(began.elapsed());
            sleep(Duration::from_secs(1).saturating_sub(began.elapsed())).await;
        }
        longest
    })
}

/// Acquires what is free, evenly, until it is stopped. Gives the longest that one took.
fn keep_acquiring(mut client: Client, prefix: String, stop: CancellationToken) -> JoinHandle<Duration> {
    tokio::spawn(async move {
        let (mut longest, mut number) = (Duration::ZERO, 0_u64);
        while !stop.is_cancelled() {
            let began = Instant::now();
            let answer = client.ask(&format!("A {prefix}/{number} {TTL} try")).await;
            assert!(answer.starts_with("A A "), "{answer}");
            longest = longest.max(began.elapsed());
            number += 1;
            sleep(ACQUIRE_EVERY.saturating_sub(began.elapsed())).await;
        }
        longest
    })
}

/// 20,000 leases end together, 2,000 of them with a waiter; a thousand holders renew in step and 500 acquires a second come.
async fn leases_end_together(leader: &Node, round: &str) {
    let dead = format!("dead-{round}");
    let mut holder = leader.connect().await;
    let renewals = take(&mut holder, &dead, DEAD).await;
    let mut waiters = leader.connect().await;
    let lines: Vec<String> = (0..WAITING).map(|n| format!("A {dead}/{n} {TTL} 60")).collect();
    waiters.say(&lines.join("\n")).await;
    until("all wait", async || leader.replica.local_view(LockTable::waiter_count).value == WAITING as u64)
        .await;

    let mut live = leader.connect().await;
    let live_renewals = take(&mut live, &format!("live-{round}"), LIVE).await;
    let stop = CancellationToken::new();
    let live = keep_alive(live, live_renewals, stop.clone());
    let new = keep_acquiring(leader.connect().await, format!("new-{round}"), stop.clone());

    // In step, and for the last time: from here on they end together.
    renew(&mut holder, &renewals).await;
    let due = Instant::now() + Duration::from_secs(TTL);
    for _ in 0..WAITING {
        let answer = timeout(Duration::from_secs(TTL) + ENDED_WITHIN, waiters.hear()).await.unwrap();
        assert!(answer.starts_with("A A "), "a waiter wasn't handed the lock: {answer}");
    }
    let newest = format!("{dead}/{}", DEAD - 1);
    until("the last lease has ended", async || !leader.is_held(&newest).await).await;
    assert!(due.elapsed() < ENDED_WITHIN, "leases ended {:?} after they were due", due.elapsed());

    stop.cancel();
    let (live, new) = (live.await.unwrap(), new.await.unwrap());
    assert!(live < ANSWERED_WITHIN, "renewing took {live:?} while leases ended");
    assert!(new < ANSWERED_WITHIN, "an acquire took {new:?} while leases ended");
}

/// Case C114, and again under another leader: there, every lease was given time anew at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_holders_feel_nothing_of_leases_that_end_together() {
    let [first, second, third] = three().await;
    assert_eq!(first.replica.lead(), Lead::Here);
    leases_end_together(&first, "1").await;

    first.stop().await;
    until("another node leads", async || {
        [&second, &third].iter().any(|node| node.replica.lead() == Lead::Here)
    })
    .await;
    let leader = if second.replica.lead() == Lead::Here { &second } else { &third };
    assert!(leader.replica.serving(native_support::SOON).await);
    leases_end_together(leader, "2").await;
    second.stop().await;
    third.stop().await;
}
