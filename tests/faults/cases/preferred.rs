//! A node that is preferred as leader.

use super::scene::Scene;
use crate::clock::{now_us, pause, wait_for};
use crate::run::Run;
use crate::world::World;
use std::time::Duration;

/// The lead moves to the healthy voter with the highest priority, also when it was away; under load nobody notices.
#[test]
fn the_lead_goes_to_the_preferred_node_and_returns_to_it() {
    let run = Run::begin("the_lead_goes_to_the_preferred_node_and_returns_to_it");
    let mut world = World::prepare(&run, 3);
    for number in 1..=3 {
        world.node(number).set(&["--priority", if number == 3 { "200" } else { "10" }]);
        world.node(number).start();
    }
    world.form(3);
    let mut scene = Scene::of(run, world);
    scene.load_lightly();
    leads_in_the_end(&scene, 3);
    let killed_us = now_us();
    scene.world.node(3).kill();
    assert_ne!(scene.world.leader(), 3);
    pause(1_000);
    println!("from the kill to the next grant: {:?} ms", scene.next_grant_ms(killed_us));

    scene.world.revive(3);
    let back_us = now_us();
    leads_in_the_end(&scene, 3);
    let gap = scene.longest_gap_ms(back_us);
    println!("longest time without a grant while the lead returned: {gap} ms");
    assert!(gap < 500, "{gap} ms without a grant");
    let before = scene.takeovers();
    pause(4_000);
    assert_eq!(scene.takeovers(), before, "the lead doesn't rest");
    let (tally, _) = scene.close();
    assert_eq!((tally.unsettled, tally.lost), (0, 0), "{tally:?}");
}

fn leads_in_the_end(scene: &Scene, number: usize) {
    let leads = || (scene.world.leader_now() == Some(number)).then_some(());
    wait_for(Duration::from_secs(30), leads)
        .unwrap_or_else(|| panic!("node {number} doesn't get the lead in 30 s"));
}
