//! A member that was away comes back: by its log or by a snapshot, killed in the middle of it, with entries that the
//! others never took.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]

mod cluster_support;
mod cluster_words;
mod replica_support;

use cluster_support::{Cluster, NewNode, Node, until};
use cluster_words::{acquire, grant, held};
use kunci_core::LockTable;
use kunci_core::command::{Command, Proof, Release, SetPolicy};
use kunci_core::reply::{Reply, SetPolicyReply};
use kunci_replica::{Lead, Member, PeerDoor, PeerSecurity, Replica, ReplicaConfig};
use kunci_types::{LeaseId, Policy, ResourceName, Revision};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;
use tokio::time::sleep;

/// Snapshots so often, and so little log behind them, that whoever was away for a moment needs one.
const OFTEN: (u64, u64) = (8 << 10, 5);
const KILLS_MIN: u64 = 30;
/// On a busy machine a member takes longer to come back, so it may be killed too early too often.
const KILLS_MAX: u64 = 120;
const DATA: &str = "KUNCI_TEST_REJOIN_DATA";
const PEER: &str = "KUNCI_TEST_REJOIN_PEER";

/// Grants `count` locks from `first` on, each in an entry of its own.
async fn write(replica: &Replica, first: u64, count: u64) {
    for number in first..first + count {
        grant(replica, number).await.unwrap();
    }
}

/// Makes the log grow by so many bytes, or a little more, and the state not at all: nothing is released by a proof of nothing.
async fn grow_log(replica: &Replica, bytes: u64) {
    let resource = ResourceName::parse(&"x".repeat(256)).unwrap();
    let proof = Proof::LeaseId(LeaseId::from_bytes([9; 16]));
    let release = || Command::Release(Release { resource: resource.clone(), proof: proof.clone() });
    let proposals = (0..bytes.div_ceil(256)).map(|_| replica.propose(release()));
    for outcome in futures::future::join_all(proposals).await {
        outcome.unwrap();
    }
}

async fn until_same_state(one: &Replica, other: &Replica) {
    let digest = |replica: &Replica| replica.local_view(LockTable::digest).value;
    until("both have the same state", || digest(one) == digest(other)).await;
}

fn cut_off(cluster: &Cluster, node: &Node) {
    for other in cluster.nodes.iter().filter(|other| other.replica.node_id() != node.replica.node_id()) {
        cluster.cuts.cut_both_ways(&node.member.peer, &other.member.peer);
    }
}

fn follower(cluster: &Cluster) -> &Node {
    cluster.nodes.iter().find(|node| node.replica.lead() != Lead::Here).unwrap()
}

/// Case C37: a member that missed a change and catches up by snapshot has the new voters. With the old ones it could
/// be elected by a quorum that is none any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_brings_the_membership_along() {
    let mut cluster = Cluster::with_snapshots(3, OFTEN).await;
    cluster.led().await;
    let away = follower(&cluster).replica.node_id();
    cut_off(&cluster, cluster.node(away));
    cluster.grow().await;
    let newest = cluster.nodes.last().unwrap().replica.node_id();
    cluster.cuts.cut_both_ways(&cluster.node(away).member.peer, &cluster.node(newest).member.peer);
    let leader = cluster.led().await.replica.clone();
    write(&leader, 0, 200).await;

    cluster.cuts.heal();
    until_same_state(&leader, &cluster.node(away).replica).await;
    let members: Vec<u64> =
        cluster.node(away).replica.status().members.iter().map(|member| member.id).collect();
    assert_eq!(members, [1, 2, 3, newest]);

    // Of four voters, two are no quorum; of the three old ones they would be.
    let old = cluster
        .nodes
        .iter()
        .map(|node| node.replica.node_id())
        .find(|id| *id != away && *id != newest)
        .unwrap();
    let pair = [away, old];
    for one in cluster.nodes.iter().filter(|node| pair.contains(&node.replica.node_id())) {
        for other in cluster.nodes.iter().filter(|node| !pair.contains(&node.replica.node_id())) {
            cluster.cuts.cut_both_ways(&one.member.peer, &other.member.peer);
        }
    }
    sleep(Duration::from_secs(3)).await;
    let leading: Vec<u64> = cluster
        .nodes
        .iter()
        .filter(|node| node.replica.lead() == Lead::Here)
        .map(|node| node.replica.node_id())
        .collect();
    assert!(leading.is_empty(), "{leading:?} leads without a quorum of four");

    cluster.cuts.heal();
    assert_eq!(held(&cluster.led().await.replica).await, Ok(200));
}

/// Case C42: a member whose log was cut behind a snapshot restarts, follows, and then leads, with everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_with_a_purged_log_restarts_and_leads_with_everything() {
    let mut cluster = Cluster::with_snapshots(3, OFTEN).await;
    let leader = cluster.led().await.replica.clone();
    write(&leader, 0, 200).await;
    let index = cluster.nodes.iter().position(|node| node.replica.lead() != Lead::Here).unwrap();
    let stopped = cluster.nodes.remove(index);
    stopped.replica.stop().await;
    write(&leader, 200, 3).await;

    let again = cluster.start_again(&stopped, &stopped.member.peer).await;
    let node_id = again.replica.node_id();
    cluster.nodes.push(again);
    until_same_state(&leader, &cluster.node(node_id).replica).await;
    let third = cluster
        .nodes
        .iter()
        .find(|node| ![node_id, leader.node_id()].contains(&node.replica.node_id()))
        .unwrap();
    third.replica.stop().await;
    assert_eq!(leader.transfer_lead(Some(node_id)).await, Ok(node_id));

    until("the restarted member leads", || cluster.node(node_id).replica.lead() == Lead::Here).await;
    assert_eq!(held(&cluster.node(node_id).replica).await, Ok(203));
}

/// Not a test of its own: the member that the test below kills.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by `killed_at_any_moment_of_its_return_a_member_takes_nothing_that_was_not_agreed` in a process of its own"]
async fn member_to_kill() {
    let (Ok(data), Ok(peer)) = (std::env::var(DATA), std::env::var(PEER)) else { return };
    let door = PeerDoor::bind(peer.parse::<SocketAddr>().unwrap(), PeerSecurity::Plain).await.unwrap();
    let (snapshot_every_bytes, entries_kept) = OFTEN;
    let member = Member { peer, ..Member::default() };
    let config = ReplicaConfig { snapshot_every_bytes, entries_kept, ..ReplicaConfig::new(data, member) };
    let replica = Replica::open(config, door).await.unwrap();
    println!("{}", replica.failed().await);
}

fn return_and_die(node: &Node, data: &Path, after: Duration) {
    let mut process = Process::new(std::env::current_exe().unwrap())
        .args(["--exact", "member_to_kill", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DATA, data)
        .env(PEER, &node.member.peer)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    assert_eq!(process.try_wait().unwrap(), None, "the member ended by itself");
    process.kill().unwrap();
    process.wait().unwrap();
}

/// Case C44: the log of a leader that was cut off ends in entries that nobody else took. While it takes in the
/// snapshot that stands in their place it is killed, at a different moment each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_moment_of_its_return_a_member_takes_nothing_that_was_not_agreed() {
    let mut cluster = Cluster::with_snapshots(3, OFTEN).await;
    let old = cluster.led().await.replica.clone();
    write(&old, 0, 20).await;
    cut_off(&cluster, cluster.node(old.node_id()));
    // Appended there and nowhere else.
    for number in 9_000..9_020 {
        let call = old.acquire(acquire(number)).await;
        drop(call);
    }
    until("the others elect a leader", || {
        cluster
            .nodes
            .iter()
            .any(|node| node.replica.node_id() != old.node_id() && node.replica.lead() == Lead::Here)
    })
    .await;
    let index = cluster.nodes.iter().position(|node| node.replica.node_id() == old.node_id()).unwrap();
    let away = cluster.nodes.remove(index);
    away.replica.stop().await;
    drop(old);
    sleep(Duration::from_millis(200)).await;
    cluster.cuts.heal();

    let leader = cluster.led().await.replica.clone();
    let (mut written, mut taken_in) = (20, BTreeSet::new());
    for round in 0..KILLS_MAX {
        if round >= KILLS_MIN && taken_in.len() > 3 {
            break;
        }
        // Far enough that the log doesn't bring it back.
        write(&leader, written, 20).await;
        written += 20;
        // The next snapshot is made once the log has grown by as much as the last one has.
        grow_log(&leader, 300 * written).await;
        return_and_die(&away, &away.data, Duration::from_millis(60 + 11 * round));
        taken_in.extend(
            std::fs::read_dir(away.data.join("snapshots")).unwrap().map(|file| file.unwrap().file_name()),
        );
    }
    assert!(
        taken_in.len() > 3,
        "hardly a snapshot was taken in, so no kill can have been in the middle: {taken_in:?}"
    );

    let again = cluster.start_again(&away, &away.member.peer).await;
    let node_id = again.replica.node_id();
    cluster.nodes.push(again);
    until_same_state(&leader, &cluster.node(node_id).replica).await;
    until("it can lead", || {
        leader.status().members.iter().any(|member| member.id == node_id && member.healthy)
    })
    .await;
    assert_eq!(leader.transfer_lead(Some(node_id)).await, Ok(node_id));
    until("the killed member leads", || cluster.node(node_id).replica.lead() == Lead::Here).await;
    assert_eq!(held(&cluster.node(node_id).replica).await, Ok(written), "exactly what was agreed");
}

/// Case C12: limits are replicated, so whoever leads decides the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_holds_whoever_leads() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.led().await.replica.clone();
    let policy = Policy { leases_max: 5, ..Policy::default() };
    let changed =
        leader.propose(Command::SetPolicy(SetPolicy { replaces: Revision::ZERO, policy })).await.unwrap();
    assert_eq!(changed.value, Reply::SetPolicy(SetPolicyReply::Changed));
    write(&leader, 0, 5).await;

    for number in 100..103 {
        let leader = cluster.led().await.replica.clone();
        let mut call = leader.acquire(acquire(number)).await.unwrap();
        let refused = format!("{:?}", call.answer(Duration::from_secs(5)).await.unwrap());
        assert!(refused.contains("OverLimit(Leases { max: 5 })"), "{refused}");
        leader.transfer_lead(None).await.unwrap();
        for node in &cluster.nodes {
            until_same_state(&leader, &node.replica).await;
        }
    }
}

/// Case C111 and its kind: a new member that was cut off before it heard of anything has no vote and no entry. It makes no
/// snapshot of that, and so starts again. Found by the simulated world.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_never_heard_of_anything_starts_again_whatever_is_asked_of_it() {
    let cluster = Cluster::of(1).await;
    let new = cluster.new_node(0).await;
    let (leader, peer) = (cluster.led().await.replica.clone(), new.member.peer.clone());
    let adding = tokio::spawn({
        let peer = peer.clone();
        async move { leader.add_member(&peer).await }
    });
    let NewNode { mut door, member, .. } = new;
    let invited = door.invitation(&member).await;
    cluster.cuts.cut_both_ways(&cluster.nodes[0].member.peer, &peer);
    let data = tempfile::tempdir().unwrap();
    let config = cluster.config(data.path(), &member);
    let replica = Replica::join(config, door, invited).await.unwrap();

    replica.trigger_snapshot().await;
    sleep(Duration::from_millis(300)).await;
    replica.stop().await;
    let node = Node { replica, member, data: data.path().to_owned() };
    let again = cluster.start_again(&node, &peer).await;

    assert_eq!(again.replica.node_id(), node.replica.node_id());
    adding.abort();
}
