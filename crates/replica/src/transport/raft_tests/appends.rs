//! Entries and heartbeats in a cluster of three.

use super::super::handshake::Purpose;
use super::cluster::{Cluster, until};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Trap 1: hundreds of requests and heartbeats, and one connection for each of the two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_three_get_every_entry_over_one_connection_for_entries_and_one_for_heartbeats() {
    let cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let others = cluster.others(leader);
    let index = leader.write(Vec::new()).await;
    cluster.all_applied(index).await;
    sleep(Duration::from_millis(300)).await;
    let before = others.map(|other| other.came_in(leader.id, Purpose::Append));
    for _ in 0..200 {
        leader.write(Vec::new()).await;
    }
    leader.fill(300).await;
    sleep(Duration::from_millis(500)).await;
    cluster.all_applied(leader.applied()).await;
    cluster.same_state();
    for (other, before) in others.into_iter().zip(before) {
        // A probe that met an empty log ended in a conflict, and that costs its connection.
        assert!(before <= 3, "{before} connections during the election");
        assert_eq!(other.came_in(leader.id, Purpose::Append), before);
    }
}

/// Trap 3: all of a new leader's votes were asked for, and the transfer itself was told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lead_passes_to_the_member_that_is_named_and_back() {
    let cluster = Cluster::start().await;
    for _ in 0..3 {
        let leader = cluster.leader().await;
        let index = leader.write(Vec::new()).await;
        cluster.all_applied(index).await;
        let [heir, _] = cluster.others(leader);
        let term = leader.term();
        leader.raft.trigger().transfer_leader(heir.id).await.unwrap();
        until("the heir leads", || heir.leader() == Some(heir.id)).await;
        assert_eq!(heir.term(), term + 1, "it took one election");
        assert_eq!(cluster.leader().await.id, heir.id);
    }
    let index = cluster.leader().await.write(Vec::new()).await;
    cluster.all_applied(index).await;
}

/// Case C40 and trap 3: a member that is cut off asks before it stands, and nobody says yes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_was_cut_off_deposes_nobody_when_it_comes_back() {
    let cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let [lonely, other] = cluster.others(leader);
    let term = leader.term();
    for peer in [leader.id, other.id] {
        cluster.net.part(lonely.id, peer);
    }
    sleep(Duration::from_millis(3_500)).await;
    assert_eq!(lonely.term(), term, "its pre-votes were not granted by silence");
    for peer in [leader.id, other.id] {
        cluster.net.join(lonely.id, peer);
    }
    let index = leader.write(Vec::new()).await;
    cluster.all_applied(index).await;
    assert_eq!((leader.term(), leader.leader()), (term, Some(leader.id)));
}

/// Trap 2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_wedges_nothing() {
    let cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    for _ in 0..3 {
        for other in cluster.others(leader) {
            cluster.net.way(leader.id, other.id).lose_back.fetch_add(1, Relaxed);
        }
        // The entry itself arrived; only both answers to it are gone.
        let written = timeout(Duration::from_secs(5), leader.write(Vec::new())).await;
        cluster.all_applied(written.unwrap()).await;
    }
}

/// Trap 1: a heartbeat has 50 ms, and an answer waits for the disk of the other end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_whose_answers_take_300_ms_keeps_its_connections() {
    let cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let [slow, _] = cluster.others(leader);
    leader.write(Vec::new()).await;
    sleep(Duration::from_millis(200)).await;
    let (term, before) = (leader.term(), slow.came_in(leader.id, Purpose::Append));
    cluster.net.way(leader.id, slow.id).late_back_ms.store(300, Relaxed);
    for _ in 0..10 {
        leader.write(Vec::new()).await;
        sleep(Duration::from_millis(200)).await;
    }
    cluster.net.way(leader.id, slow.id).late_back_ms.store(0, Relaxed);
    cluster.all_applied(leader.applied()).await;
    assert_eq!(slow.came_in(leader.id, Purpose::Append), before);
    assert_eq!(cluster.leader().await.term(), term);
}

/// The old leader takes back what no quorum has, on fresh connections (trap 1).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_cut_off_follows_the_new_one_and_drops_what_only_it_had() {
    let cluster = Cluster::start().await;
    let old = cluster.leader().await;
    let index = old.write(Vec::new()).await;
    cluster.all_applied(index).await;
    let [one, other] = cluster.others(old);
    for peer in [one.id, other.id] {
        cluster.net.part(old.id, peer);
    }
    let raft = old.raft.clone();
    let lost = tokio::spawn(async move {
        let entry = kunci_core::command::Entry::new(kunci_types::ClusterTime::from_ms(1), Vec::new());
        let entry = crate::raft_types::EntryBytes(entry.encode().into());
        raft.client_write(entry).await.is_err()
    });
    let new = cluster.leader_among(&[one.id, other.id]).await;
    new.fill(200).await;
    for peer in [one.id, other.id] {
        cluster.net.join(old.id, peer);
    }
    cluster.all_applied(new.applied()).await;
    assert!(timeout(Duration::from_secs(5), lost).await.unwrap().unwrap(), "its write was not acknowledged");
    assert_eq!(old.leader(), Some(new.id));
    cluster.same_state();
}

/// A leader hears from its followers' questions, a follower hears its leader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_note_that_they_hear_the_leader_and_answer_pulses() {
    let cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    for other in cluster.others(leader) {
        assert!(other.host.roster.silent_for(leader.id).unwrap() < Duration::from_millis(500));
        let pulse = crate::pulse::Pulse::default();
        let census = other.asks.pulse(leader.id, "", &pulse, Duration::from_secs(1)).await.unwrap();
        assert_eq!(census.leader, Some(other.id), "the test's leader answers who asked");
    }
}
