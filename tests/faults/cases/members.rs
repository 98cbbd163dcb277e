//! Members that come, go, lose everything or never answer.

use super::asking::{Ask, acquire, client, status};
use super::scene::Scene;
use crate::clock::{now_us, pause, wait_for};
use crate::run::Run;
use crate::world::World;
use kunci_oracle::History;
use serde_json::json;
use std::time::Duration;

/// C131 and C47: a member loses its disk under load. It comes back only under a new id, as a learner that is caught
/// up before it votes; and from then on the cluster can lose another one.
#[test]
fn a_member_that_lost_its_disk_is_replaced_under_load() {
    let mut scene = Scene::busy("a_member_that_lost_its_disk_is_replaced_under_load", 3);
    pause(1_000);
    let leader = scene.world.leader();
    let lost = scene.world.others(leader)[0];
    let old = scene.world.id_of(lost);
    let replaced_us = now_us();
    scene.world.node(lost).kill();
    scene.world.node(lost).wipe();
    scene.world.node(lost).start();
    scene.world.answers(lost);
    let peer = scene.world.node(lost).peer();
    let answer = scene.world.change(leader, "/cluster/replace", &json!({ "nodeId": old, "peer": peer }));
    let new = answer["nodeId"].as_u64().unwrap();
    assert!(new > 3, "an id is never used twice: {answer}");
    scene.world.wait_voter(leader, new);
    assert!(scene.world.member(leader, old).is_none(), "member {old} is still there");
    scene.world.wait_ready(lost);
    let gap = scene.longest_gap_ms(replaced_us);
    println!("longest time without a grant: {gap} ms");
    assert!(gap < 1_000, "{gap} ms without a grant");

    // It counts: without the old leader it and the third one are the quorum.
    scene.world.node(leader).kill();
    scene.world.leader();
    pause(1_500);
    scene.world.revive(leader);
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
}

/// C47 and C15: the log that a newcomer would need is gone; it is caught up by a snapshot, under load, and then
/// knows what the others know.
#[test]
fn a_newcomer_is_caught_up_by_a_snapshot_once_the_log_is_gone() {
    /// More than are kept behind a snapshot (1,000), and then more than one purge takes at once (1,024).
    const ENTRIES: u64 = 2_300;
    let mut scene = Scene::on_small_disks("a_newcomer_is_caught_up_by_a_snapshot_once_the_log_is_gone");
    scene.load();
    let enough = wait_for(Duration::from_secs(60), || (applied(&scene) >= ENTRIES).then_some(()));
    assert!(enough.is_some(), "only {} entries", applied(&scene));
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    let mine = scene.world.inside(move || async move {
        let ask = Ask { resource: "c47/r", owner: "a", ttl_ms: 60_000, wait_ms: 0 };
        acquire(&mut client(1, &doors, &history), ask).await
    });
    // A disk that is getting low makes snapshots early, which is the only way to them with so little in the log; and
    // renewals, which go on, are what fills the log quickly.
    (1..=3).for_each(|number| scene.world.disk(number).fill_to(60));
    let leader = scene.world.leader();
    let lease = json!({ "resource": "c47/r", "leaseId": mine.lease });
    let many = json!({ "leases": vec![lease; 8_000] });
    for _ in 0..30 {
        scene.world.ask(leader, "POST", "/leases/renew", Some(many.clone()));
    }
    let made = wait_for(Duration::from_secs(10), || has_snapshot(&mut scene, leader).then_some(()));
    assert!(made.is_some(), "node {leader} makes no snapshot:\n{}", scene.world.node(leader).words());
    (1..=3).for_each(|number| scene.world.disk(number).empty());

    let leader = scene.world.leader();
    let lost = scene.world.others(leader)[0];
    let old = scene.world.id_of(lost);
    scene.world.node(lost).kill();
    scene.world.node(lost).wipe();
    scene.world.node(lost).start();
    scene.world.answers(lost);
    let peer = scene.world.node(lost).peer();
    let answer = scene.world.change(leader, "/cluster/replace", &json!({ "nodeId": old, "peer": peer }));
    scene.world.wait_voter(leader, answer["nodeId"].as_u64().unwrap());
    assert!(has_snapshot(&mut scene, lost), "the newcomer was caught up without a snapshot");

    // With the leader gone the newcomer's copy is one of the two that count.
    scene.world.node(leader).kill();
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    let held =
        scene.world.inside(move || async move { status(&mut client(2, &doors, &history), "c47/r").await });
    assert_eq!(held.map(|held| held.token), Some(mine.token));
    scene.world.revive(leader);
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
}

/// How far node 1 has applied the log.
fn applied(scene: &Scene) -> u64 {
    let cluster = scene.world.ask(1, "GET", "/cluster", None);
    cluster.map_or(0, |(_, cluster)| cluster["nodes"][0]["appliedIndex"].as_u64().unwrap_or_default())
}

fn has_snapshot(scene: &mut Scene, number: usize) -> bool {
    let snapshots = scene.world.node(number).data().join("snapshots");
    std::fs::read_dir(snapshots).is_ok_and(|mut entries| entries.next().is_some())
}

/// C86: a cluster is built anew under the same addresses. It is another one, and says so; leases of the old one are
/// unknown, tokens go on above the floor that its operator stated, and a node with data of the old one isn't taken.
#[test]
fn a_cluster_that_is_built_anew_is_another_one() {
    const FLOOR: u64 = 1_000_000;
    let mut scene = Scene::quiet("a_cluster_that_is_built_anew_is_another_one", 3);
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    let ask = Ask { resource: "c86/r", owner: "a", ttl_ms: 60_000, wait_ms: 0 };
    let mine = {
        let (doors, history) = (doors.clone(), history.clone());
        scene.world.inside(move || async move { acquire(&mut client(1, &doors, &history), ask).await })
    };
    let (_, before) = scene.world.ask(1, "GET", "/cluster", None).unwrap();
    for number in 1..=3 {
        scene.world.node(number).kill();
        if number != 3 {
            scene.world.node(number).wipe();
        }
        scene.world.node(number).start();
    }
    (1..=3).for_each(|number| scene.world.answers(number));
    let (status, answer) =
        scene.world.ask(1, "POST", "/cluster/init", Some(json!({ "tokenFloor": FLOOR }))).unwrap();
    assert_eq!(status, 200, "{answer}");
    scene.world.wait_ready(1);
    assert_ne!(answer["clusterId"], before["clusterId"]);

    let peer = scene.world.node(3).peer();
    let (status, answer) = scene.world.ask(1, "POST", "/cluster/add", Some(json!({ "peer": peer }))).unwrap();
    assert_eq!((status, &answer["code"]), (409, &json!("other_cluster")), "{answer}");
    scene.world.add(1, 2);

    let (_, renewed) =
        scene.world.ask(2, "POST", "/locks/c86%2Fr/renew", Some(json!({ "leaseId": mine.lease }))).unwrap();
    assert_eq!(
        (&renewed["code"], &renewed["reason"]),
        (&json!("not_holder"), &json!("unknown_lease")),
        "{renewed}"
    );
    // A history of its own: the old one's order is another cluster's.
    let theirs = scene.world.inside(move || async move {
        acquire(&mut client(2, &doors[..2], &History::default()), Ask { owner: "b", ..ask }).await
    });
    assert!(theirs.token > FLOOR && theirs.token > mine.token, "{theirs:?}");
    scene.close();
}

/// A member whose disk was emptied is nobody: it doesn't vote under its old name, and the cluster goes on without it.
#[test]
fn an_emptied_member_is_nobody_until_it_is_replaced() {
    let mut scene = Scene::quiet("an_emptied_member_is_nobody_until_it_is_replaced", 3);
    let leader = scene.world.leader();
    let emptied = scene.world.others(leader)[0];
    scene.world.node(emptied).kill();
    scene.world.node(emptied).wipe();
    scene.world.node(emptied).start();
    scene.world.answers(emptied);
    let (_, seen) = scene.world.ask(emptied, "GET", "/cluster", None).unwrap();
    assert_eq!(seen["nodes"][0]["role"], "new", "{seen}");
    assert!(seen["clusterId"].is_null(), "{seen}");

    // The third one alone has no quorum: the emptied one gives it no vote.
    scene.world.node(leader).kill();
    pause(3_000);
    assert_eq!(scene.world.leader_now(), None);
    scene.world.revive(leader);
    scene.world.leader();
    scene.close();
}

/// C131: a member with a wrong address is refused before it can cost the quorum anything, and locks are served all the
/// time.
#[test]
fn adding_a_wrong_address_interrupts_nothing() {
    let mut scene = Scene::busy("adding_a_wrong_address_interrupts_nothing", 3);
    let leader = scene.world.leader();
    let since_us = now_us();
    for peer in ["10.77.0.1:9", "10.77.0.99:7402"] {
        let answer = scene.world.ask(leader, "POST", "/cluster/add", Some(json!({ "peer": peer })));
        let (status, answer) = answer.expect("adding a wrong address is answered");
        assert_eq!(status, 503, "{answer}");
        assert_eq!(answer["code"], "peer_unreachable", "{answer}");
    }
    let gap = scene.longest_gap_ms(since_us);
    assert!(gap < 500, "{gap} ms without a grant");
    let (_, cluster) = scene.world.ask(leader, "GET", "/cluster", None).unwrap();
    assert_eq!(cluster["nodes"].as_array().map(Vec::len), Some(3), "{cluster}");
    scene.close();
}

/// C40a: a removed node that is left running deposes nobody; the three go on as if it weren't there.
#[test]
fn a_removed_node_left_running_disturbs_nobody() {
    let mut scene = Scene::busy("a_removed_node_left_running_disturbs_nobody", 4);
    let leader = scene.world.leader();
    let removed = scene.world.others(leader)[0];
    let id = scene.world.id_of(removed);
    scene.world.change(leader, "/cluster/remove", &json!({ "nodeId": id }));
    pause(500);
    let (before, since_us) = (scene.takeovers(), now_us());
    pause(5_000);
    assert_eq!(scene.takeovers(), before, "there was an election");
    let gap = scene.longest_gap_ms(since_us);
    println!("longest time without a grant: {gap} ms");
    assert!(gap < 500, "{gap} ms without a grant");
    assert!(scene.world.member(leader, id).is_none(), "member {id} is still there");
    scene.close();
}

/// C40d and C50: a node that is killed and started again and again disturbs nobody.
#[test]
fn a_node_that_restarts_in_a_loop_disturbs_nobody() {
    let mut scene = Scene::busy("a_node_that_restarts_in_a_loop_disturbs_nobody", 3);
    let leader = scene.world.leader();
    let weak = scene.world.others(leader)[0];
    let since_us = now_us();
    for turn in 0..8 {
        scene.world.node(weak).kill();
        scene.world.node(weak).start();
        pause(150 + 100 * turn);
    }
    assert_eq!(scene.world.leader(), leader);
    let gap = scene.longest_gap_ms(since_us);
    println!("longest time without a grant: {gap} ms");
    assert!(gap < 500, "{gap} ms without a grant");
    scene.world.wait_ready(weak);
    scene.close();
}

/// C38 and C131: a node whose link is slow joins while load goes on, and a second change meanwhile is refused.
#[test]
fn a_slow_newcomer_joins_without_holding_anybody_up() {
    let run = Run::begin("a_slow_newcomer_joins_without_holding_anybody_up");
    let mut world = World::prepare(&run, 4);
    (1..=4).for_each(|number| world.node(number).start());
    world.answers(4);
    world.form(3);
    let mut scene = Scene::of(run, world);
    scene.load();
    pause(1_000);
    scene.world.network().slow(4, 2_000);
    let since_us = now_us();
    let leader = scene.world.leader();
    let id = scene.world.add(leader, 4);
    let gap = scene.longest_gap_ms(since_us);
    println!("node 4 is member {id}; longest time without a grant: {gap} ms");
    assert!(gap < 1_000, "{gap} ms without a grant");
    scene.world.network().heal();
    scene.close();
}
