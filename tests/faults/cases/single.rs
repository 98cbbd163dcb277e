//! One node: the harness, the workload, the checks and each fault by themselves.

use super::scene::Scene;
use crate::checks;
use crate::clock::pause;
use std::time::Duration;

/// S1 to S8 with no fault at all: what the checks find here is theirs, or the product's at its simplest. L1: a
/// resource whose holder lets its lease lapse reaches the next waiter in time.
#[test]
fn a_node_without_faults_keeps_its_promises() {
    let mut scene = Scene::busy("a_node_without_faults_keeps_its_promises", 1);
    pause(6_000);
    let tally = scene.rest();
    assert_eq!((tally.unsettled, tally.lost), (0, 0));
    let hand_overs = kunci_oracle::hand_overs(&scene.run.history.calls());
    println!("{hand_overs:?}");
    // What L1 allows, and time for an answer on a busy machine.
    assert!(hand_overs.iter().all(|hand_over| hand_over.delay_ms <= 250 + 150), "{hand_overs:?}");
    let (_, summary) = scene.close();
    assert!(summary.grants > 100, "{summary:?}");
    checks::expect_lies_caught(&scene.run.history.calls());
}

/// S4 and S5: killed again and again under load, a node loses nothing that it acknowledged.
#[test]
fn a_node_that_is_killed_again_and_again_keeps_its_promises() {
    let mut scene = Scene::busy("a_node_that_is_killed_again_and_again_keeps_its_promises", 1);
    for _ in 0..5 {
        pause(1_200);
        scene.world.node(1).kill();
        scene.world.node(1).start();
        scene.world.wait_ready(1);
    }
    scene.close();
}

/// A wall clock that jumps by a day, a machine that stalls and a disk that is slow, all on one node: section 4's
/// times hold.
#[test]
fn a_node_forgives_a_jumping_clock_a_stall_and_a_slow_disk() {
    use crate::world::{DiskFault, FalseTime, World};
    let run = crate::run::Run::begin("a_node_forgives_a_jumping_clock_a_stall_and_a_slow_disk");
    let clock = FalseTime::new(run.folder(), "node-1");
    let mut world = World::prepare(&run, 1);
    world.node(1).set_clock(clock.clone());
    world.node(1).start();
    world.form(1);
    let mut scene = Scene::of(run, world);
    scene.load();
    for seconds in [86_400, -86_400, 0] {
        pause(700);
        clock.jump(seconds);
        pause(300);
        scene.world.node(1).pause();
        pause(1_500);
        scene.world.node(1).go_on();
    }
    {
        let _slow = scene.world.node(1).spoil_disk(DiskFault::Slow(Duration::from_millis(50)));
        pause(1_500);
    }
    pause(500);
    scene.close();
}
