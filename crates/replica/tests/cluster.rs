//! Several replicas: who belongs, who leads, and that both change without losing anything.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]

mod cluster_support;
mod cluster_words;
mod replica_support;

use cluster_support::{Cluster, Node, until};
use cluster_words::{grant, held};
use kunci_replica::{ChangeRefused, Lead, NoLead, Refusal, Replica, ReplicaConfig, Role};
use std::time::Duration;
use tokio::time::Instant;

/// Cases C131, C47: a new node copies everything before it counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_node_is_a_learner_until_it_has_caught_up_and_then_a_voter() {
    let mut cluster = Cluster::of(1).await;
    for number in 0..50 {
        grant(&cluster.nodes[0].replica, number).await.unwrap();
    }
    cluster.grow().await;
    cluster.grow().await;

    let status = cluster.leader().replica.status();
    let roles: Vec<(u64, Role)> = status.members.iter().map(|member| (member.id, member.role)).collect();
    assert_eq!(roles, [(1, Role::Leader), (2, Role::Follower), (3, Role::Follower)]);
    assert_eq!(status.ids_used, 3);

    let expected = cluster.leader().replica.local_view(kunci_core::LockTable::digest).value;
    for node in &cluster.nodes {
        until("every node has the same state", || {
            node.replica.local_view(kunci_core::LockTable::digest).value == expected
        })
        .await;
    }
}

/// Case C38.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_change_of_the_members_is_refused_while_one_is_under_way() {
    let cluster = Cluster::of(1).await;
    let (one, other) = (cluster.new_node(0).await, cluster.new_node(0).await);
    let (one_peer, other_peer) = (one.member.peer.clone(), other.member.peer.clone());
    let (joining, waiting) = (tokio::spawn(one.join()), tokio::spawn(other.join()));

    let leader = &cluster.leader().replica;
    let (first, second) = tokio::join!(leader.add_member(&one_peer), leader.add_member(&other_peer));

    let refused: Vec<ChangeRefused> = [first, second].into_iter().filter_map(Result::err).collect();
    assert!(matches!(&refused[..], [ChangeRefused::InProgress(_)]), "{refused:?}");
    drop((joining.await, waiting.abort()));
}

/// Cases C131, C86, C40: an add that can't work changes nothing, and says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_without_a_new_node_of_this_cluster_is_refused() {
    let cluster = Cluster::of(1).await;
    let stranger = Cluster::of(1).await;
    let leader = &cluster.leader().replica;

    let nobody = leader.add_member("127.0.0.1:1").await.unwrap_err();
    assert!(matches!(nobody, ChangeRefused::Unreachable { .. }), "{nobody}");
    let other = leader.add_member(&stranger.nodes[0].member.peer).await.unwrap_err();
    assert!(matches!(other, ChangeRefused::OtherCluster { .. }), "{other}");
    let itself = leader.add_member(&cluster.nodes[0].member.peer).await.unwrap();
    assert_eq!((itself.node_id, itself.already), (1, true));

    assert_eq!(leader.status().members.len(), 1);
}

/// Cases C40, C140: a node that was removed can't come back under its id, and knows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_node_is_refused_and_its_id_is_never_used_again() {
    let mut cluster = Cluster::of(3).await;
    let leader = cluster.led().await.replica.clone();
    let leader_id = leader.node_id();
    let removed_id =
        cluster.nodes.iter().map(|node| node.replica.node_id()).filter(|id| *id != leader_id).max().unwrap();

    assert!(!leader.remove_member(removed_id, false).await.unwrap().already);
    assert!(leader.remove_member(removed_id, false).await.unwrap().already);

    let removed = cluster.node(removed_id);
    until("the removed node knows it", || {
        matches!(removed.replica.lead(), Lead::Nobody { why: NoLead::Removed, .. })
    })
    .await;
    let term = leader.status();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(leader.lead(), Lead::Here, "a removed node must not disturb: {term:?}");
    let again = leader.add_member(&removed.member.peer).await.unwrap_err();
    assert!(matches!(again, ChangeRefused::WasRemoved { .. }), "{again}");

    cluster.nodes.retain(|node| node.replica.node_id() != removed_id);
    cluster.grow().await;
    assert_eq!(cluster.nodes.last().unwrap().replica.node_id(), 4);
}

/// A member whose data is gone may not vote under its old id; its place goes to a new one in one step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_member_comes_back_only_under_a_new_id() {
    let mut cluster = Cluster::of(3).await;
    let leader = cluster.led().await.replica.clone();
    for number in 0..20 {
        grant(&leader, number).await.unwrap();
    }
    let index = cluster.nodes.iter().position(|node| node.replica.lead() != Lead::Here).unwrap();
    let lost = cluster.nodes.remove(index);
    let lost_id = lost.replica.node_id();
    lost.replica.stop().await;
    std::fs::remove_dir_all(&lost.data).unwrap();

    let mut new = cluster.new_node(0).await;
    new.member.peer = lost.member.peer.clone();
    let listener = tokio::net::TcpListener::bind(&lost.member.peer).await.unwrap();
    new.door = kunci_replica::PeerDoor::new(
        Box::new(listener),
        std::sync::Arc::new(kunci_replica::transport::TcpLinks::default()),
        kunci_replica::PeerSecurity::Plain,
    );
    let joining = tokio::spawn(new.join());
    let refused = leader.add_member(&lost.member.peer).await.unwrap_err();
    assert!(matches!(refused, ChangeRefused::Emptied { node_id, .. } if node_id == lost_id), "{refused}");

    let added = leader.replace_member(lost_id, &lost.member.peer).await.unwrap();
    assert_eq!(added.node_id, 4);
    cluster.nodes.push(joining.await.unwrap());
    cluster.until_voter(4).await;
    let members: Vec<u64> = leader.status().members.iter().map(|member| member.id).collect();
    assert!(!members.contains(&lost_id) && members.len() == 3, "{members:?}");
    assert_eq!(held(&leader).await, Ok(20));
}

/// A removal that would leave no living quorum needs force.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_that_would_cost_the_quorum_is_refused() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.led().await.replica.clone();
    let others: Vec<&Node> = cluster.nodes.iter().filter(|node| node.replica.lead() != Lead::Here).collect();
    others[0].replica.stop().await;
    until("the stopped node counts as down", || {
        leader.status().members.iter().filter(|member| member.healthy).count() == 2
    })
    .await;

    let refused = leader.remove_member(others[1].replica.node_id(), false).await.unwrap_err();
    assert!(matches!(refused, ChangeRefused::Unsafe { healthy: 1, voters: 2, .. }), "{refused}");
    // The one that is down can go.
    assert!(!leader.remove_member(others[0].replica.node_id(), false).await.unwrap().already);
}

/// Cases C48, C134: leadership moves under load; nothing is lost, and the gap is short.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hand_over_loses_nothing_that_was_acknowledged() {
    let cluster = Cluster::of(3).await;
    let (mut number, mut gaps) = (0, Vec::new());
    for _ in 0..10 {
        let leader = cluster.led().await.replica.clone();
        let handing = tokio::spawn(async move { (leader.transfer_lead(None).await, Instant::now()) });
        let mut last = Instant::now();
        let mut longest = Duration::ZERO;
        loop {
            let Some(node) = cluster.nodes.iter().find(|node| node.replica.lead() == Lead::Here) else {
                tokio::time::sleep(Duration::from_micros(200)).await;
                continue;
            };
            match grant(&node.replica, number).await {
                Ok(_) => {
                    number += 1;
                    longest = longest.max(last.elapsed());
                    last = Instant::now();
                }
                Err(Refusal::NoLeader) => tokio::time::sleep(Duration::from_micros(200)).await,
                Err(other) => panic!("{other}"),
            }
            if handing.is_finished() && node.replica.lead() == Lead::Here && number % 10 == 9 {
                break;
            }
        }
        handing.await.unwrap().0.unwrap();
        gaps.push(longest);
    }
    println!("longest gap of each hand-over: {gaps:?}");
    let leader = &cluster.led().await.replica;
    assert_eq!(held(leader).await, Ok(number));
}

/// Case C20, guarantee S4: a leader without its quorum acknowledges nothing and says so at once; when it is back, so is
/// the service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_lost_its_quorum_refuses_at_once() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.led().await;
    grant(&leader.replica, 1).await.unwrap();
    for other in cluster.nodes.iter().filter(|node| node.replica.node_id() != leader.replica.node_id()) {
        cluster.cuts.cut_both_ways(&leader.member.peer, &other.member.peer);
    }

    until("the isolated leader knows", || {
        matches!(leader.replica.lead(), Lead::Nobody { why: NoLead::NoQuorum, .. })
    })
    .await;
    let asked = Instant::now();
    assert_eq!(grant(&leader.replica, 2).await, Err(Refusal::NoQuorum));
    assert_eq!(held(&leader.replica).await, Err(Refusal::NoQuorum));
    assert!(asked.elapsed() < Duration::from_millis(50));

    let elsewhere = cluster.led().await;
    assert_ne!(elsewhere.replica.node_id(), leader.replica.node_id());
    assert_eq!(held(&elsewhere.replica).await, Ok(1));

    cluster.cuts.heal();
    until("the old leader follows", || matches!(leader.replica.lead(), Lead::At { .. })).await;
}

/// Case C50(c): a member that starts at another address is found there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_moved_is_found_at_its_new_address() {
    let mut cluster = Cluster::of(3).await;
    let index = {
        cluster.led().await;
        cluster.nodes.iter().position(|node| node.replica.lead() != Lead::Here).unwrap()
    };
    let moving = cluster.nodes.remove(index);
    moving.replica.stop().await;
    let elsewhere = cluster.new_node(0).await;
    let peer = elsewhere.member.peer.clone();
    drop(elsewhere);

    let moved = cluster.start_again(&moving, &peer).await;
    until("the leader knows the new address", || {
        cluster.leader().replica.status().members.iter().any(|member| member.peer == peer)
    })
    .await;
    until("it follows", || matches!(moved.replica.lead(), Lead::At { .. })).await;
}

/// Leadership moves to the member with the highest priority, and not before that member has been there for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_moves_to_the_preferred_member() {
    let mut cluster = Cluster::of(1).await;
    let preferred = cluster.new_node(10).await;
    let peer = preferred.member.peer.clone();
    let founder = cluster.nodes[0].replica.clone();
    let (added, node) = tokio::join!(founder.add_member(&peer), preferred.join());
    cluster.nodes.push(node);
    cluster.until_voter(added.unwrap().node_id).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(founder.lead(), Lead::Here, "too early");

    until("the preferred member leads", || cluster.nodes[1].replica.lead() == Lead::Here).await;
}

/// All at once, and in another order: what was acknowledged is there (case C50(b)).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_was_down_altogether_comes_back_with_everything() {
    let mut cluster = Cluster::of(3).await;
    let leader = cluster.led().await.replica.clone();
    for number in 0..20 {
        grant(&leader, number).await.unwrap();
    }
    let nodes = std::mem::take(&mut cluster.nodes);
    for node in &nodes {
        node.replica.stop().await;
    }
    drop(leader);
    for node in nodes.iter().rev() {
        let again = cluster.start_again(node, &node.member.peer).await;
        cluster.nodes.push(again);
    }
    assert_eq!(held(&cluster.led().await.replica).await, Ok(20));
}

/// A new node can't be made where one lives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_with_a_node_forms_no_second_cluster() {
    let cluster = Cluster::of(1).await;
    cluster.nodes[0].replica.stop().await;
    let (door, member) = replica_support::door().await;
    let refused =
        Replica::form(ReplicaConfig::new(&cluster.nodes[0].data, member), door, None).await.err().unwrap();
    assert!(refused.to_string().contains("holds node 1 of cluster"), "{refused}");
}
