//! Many clients that want few locks, in bad weather: when each of them believed to hold one.

use crate::cluster::Cluster;
use crate::weather::Weather;
use kunci_client::{Client, FencingToken, HeldLock};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// For how long somebody believed to hold a lock, exclusive at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Belief {
    pub(crate) resource: usize,
    pub(crate) token: FencingToken,
    pub(crate) from: Instant,
    pub(crate) until: Instant,
}

/// Takes one lock after another until `end`, and says when it believed what.
pub(crate) async fn member(client: Client, number: usize, resources: usize, end: Instant) -> Vec<Belief> {
    let mut beliefs = Vec::new();
    for round in 0.. {
        if Instant::now() >= end {
            break;
        }
        // Without a random source, but different for each member and round.
        let resource = (number * 7 + round * 3) % resources;
        let request = client.lock(format!("crowd/{resource}")).ttl(Duration::from_secs(1));
        let Ok(lock) = request.wait(Duration::from_secs(2)).acquire().await else { continue };
        // Some hold on for longer than a lease lasts, so that it has to be renewed, or is lost.
        let longest = if (number + round).is_multiple_of(2) { 300 } else { 3_000 };
        let hold = Duration::from_millis(((number * 131 + round * 61) % longest) as u64);
        let belief = believe(&lock, hold).await;
        beliefs.push(Belief { resource, ..belief });
        if round.is_multiple_of(3) {
            drop(lock);
        } else {
            let _ = lock.release().await;
        }
    }
    beliefs
}

/// Works under a lock for some time, or until it is lost.
async fn believe(lock: &HeldLock, hold: Duration) -> Belief {
    let from = Instant::now();
    let mut deadline = from;
    while from.elapsed() < hold {
        let remaining = lock.remaining();
        if remaining.is_zero() {
            break;
        }
        // Read after what is left, so that it never comes out earlier than what the lock believes.
        deadline = Instant::now() + remaining;
        sleep(Duration::from_millis(5)).await;
    }
    Belief { resource: 0, token: lock.token(), from, until: deadline.min(Instant::now()) }
}

/// What a network and an operator do meanwhile.
pub(crate) async fn storm(cluster: &Cluster, stormy: &Weather, end: Instant) {
    let pause = Duration::from_millis(400);
    // Who is cut off loses its locks, and those who aren't get them.
    for silence in [1_500, 900, 1_100].into_iter().cycle() {
        if Instant::now() >= end {
            break;
        }
        sleep(pause).await;
        stormy.cut();
        sleep(pause).await;
        cluster.lead_moves().await;
        sleep(pause).await;
        stormy.silent();
        sleep(Duration::from_millis(silence)).await;
        stormy.back();
    }
}

/// Two who believed in one lock at one time.
pub(crate) fn overlaps(mut beliefs: Vec<Belief>) -> Vec<(Belief, Belief)> {
    beliefs.sort_by_key(|belief| (belief.resource, belief.token));
    let pairs = beliefs.windows(2).map(|pair| (pair[0], pair[1]));
    pairs.filter(|(one, next)| one.resource == next.resource && one.until > next.from).collect()
}
