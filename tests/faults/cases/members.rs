//! Members that come, go, lose everything or never answer.

use super::scene::Scene;
use crate::clock::{now_us, pause};
use crate::run::Run;
use crate::world::World;
use serde_json::json;

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
