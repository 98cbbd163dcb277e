//! The process of a leader ends, or one member only thinks so. Election timeouts are 20 s here: nobody waits for one.

use super::cluster::{Cluster, until};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::{sleep, timeout};

const PATIENCE_MS: u64 = 20_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_process_has_ended_is_followed_by_another_at_once() {
    let mut cluster = Cluster::start_with(PATIENCE_MS).await;
    let leader = cluster.leader().await.id;
    let index = cluster.leader().await.write(Vec::new()).await;
    cluster.all_applied(index).await;
    let term = cluster.node(leader).term();
    let ended = cluster.nodes.remove(cluster.nodes.iter().position(|node| node.id == leader).unwrap());
    ended.end().await;

    let others: Vec<u64> = cluster.nodes.iter().map(|node| node.id).collect();
    let next = timeout(Duration::from_millis(PATIENCE_MS / 2), cluster.leader_among(&others)).await;
    let next = next.expect("they waited for an election timeout");
    assert_eq!((next.id, next.term()), (others[0], term + 1), "not the first in turn, or not at once");
    next.write(Vec::new()).await;
}

/// Connections break for other reasons, and a leader that can be connected to lives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_loses_its_connections_goes_on_leading() {
    let cluster = Cluster::start_with(PATIENCE_MS).await;
    let leader = cluster.leader().await;
    let term = leader.term();
    for _ in 0..3 {
        let index = leader.write(Vec::new()).await;
        cluster.all_applied(index).await;
        for other in cluster.others(leader) {
            cluster.net.way(leader.id, other.id).break_all();
        }
        sleep(Duration::from_millis(300)).await;
    }
    let index = leader.write(Vec::new()).await;
    cluster.all_applied(index).await;
    assert_eq!((leader.term(), leader.leader()), (term, Some(leader.id)));
}

/// A firewall that refuses in the leader's place, or a leader that was moved: the others hear it, and say no.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_alone_takes_the_leader_for_gone_deposes_nobody() {
    let cluster = Cluster::start_with(PATIENCE_MS).await;
    let leader = cluster.leader().await;
    let [mistaken, other] = cluster.others(leader);
    let index = leader.write(Vec::new()).await;
    cluster.all_applied(index).await;
    let term = leader.term();
    let ways = [cluster.net.way(leader.id, mistaken.id), cluster.net.way(mistaken.id, leader.id)];
    for way in &ways {
        way.is_refused.store(true, Relaxed);
        way.break_all();
    }
    let tried = &cluster.net.way(mistaken.id, leader.id).refused;
    until("it looks after the leader", || tried.load(Relaxed) > 0).await;
    sleep(Duration::from_millis(500)).await;
    let index = leader.write(Vec::new()).await;
    until("the other applies it", || other.applied() >= index).await;
    assert!(mistaken.applied() < index, "it was meant to be cut off");
    assert_eq!(mistaken.term(), term, "it stood although a quorum hears the leader");

    for way in &ways {
        way.is_refused.store(false, Relaxed);
    }
    let index = leader.write(Vec::new()).await;
    cluster.all_applied(index).await;
    assert_eq!((leader.term(), leader.leader()), (term, Some(leader.id)));
}
