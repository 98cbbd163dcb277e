//! Wall clocks that jump by a day, each in its own direction.

use super::asking::{Ask, acquire, client};
use super::scene::Scene;
use crate::clock::{now_us, pause, since};
use crate::run::Run;
use crate::world::{FalseTime, World};

const DAY_S: i64 = 86_400;

/// What a node shows of the lease, with the time for people.
fn shown(scene: &Scene, node: usize) -> serde_json::Value {
    let (status, shown) = scene.world.ask(node, "GET", "/locks/c22%2Fr", None).unwrap();
    assert_eq!(status, 200, "{shown}");
    shown
}

/// C22: steps of a day, forwards on one node and back on another, end no lease early and keep none alive; not when a
/// node with another wall clock takes the lead either. Monotonic clocks are left alone: they are what counts.
#[test]
fn a_wall_clock_step_moves_no_lease() {
    const TTL_MS: u64 = 3_000;
    let run = Run::begin("a_wall_clock_step_moves_no_lease");
    let mut world = World::prepare(&run, 3);
    let clocks: Vec<FalseTime> =
        (1..=3).map(|number| FalseTime::new(run.folder(), &format!("node-{number}"))).collect();
    for (number, clock) in (1..=3).zip(&clocks) {
        world.node(number).set_clock(clock.clone());
        world.node(number).start();
    }
    world.form(3);
    let mut scene = Scene::of(run, world);
    scene.load();
    let ask = Ask { resource: "c22/r", owner: "a", ttl_ms: TTL_MS, wait_ms: 0 };
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    let begun_us = now_us();
    {
        let (doors, history) = (doors.clone(), history.clone());
        scene.world.inside(move || async move { acquire(&mut client(1, &doors, &history), ask).await });
    }
    let b = scene.world.begin_inside(move || async move {
        let ask = Ask { owner: "b", wait_ms: 20_000, ..ask };
        acquire(&mut client(2, &doors, &history), ask).await
    });
    let leader = scene.world.leader();
    for (number, clock) in (1..=3).zip(&clocks) {
        clock.jump(if number == leader { DAY_S } else { -DAY_S });
    }
    let day = |shown: &serde_json::Value| shown["expiresAt"].as_str().unwrap_or_default()[..10].to_owned();
    let ahead = shown(&scene, leader);
    pause(1_000);
    clocks.iter().for_each(|clock| clock.jump(-DAY_S));
    let back = shown(&scene, leader);
    assert_ne!(day(&ahead), day(&back), "the leader's wall clock didn't jump: {ahead} {back}");
    b.join().unwrap();
    let lasted_ms = u64::try_from(since(begun_us).as_millis()).unwrap();
    println!("a lease of {TTL_MS} ms went on to the next after {lasted_ms} ms");
    assert!((TTL_MS..TTL_MS + 600).contains(&lasted_ms), "{lasted_ms} ms");

    let hand_overs = kunci_oracle::hand_overs(&scene.run.history.calls());
    println!("{hand_overs:?}");
    assert!(hand_overs.iter().all(|hand_over| hand_over.delay_ms < 600), "{hand_overs:?}");
    clocks[leader - 1].jump(DAY_S);
    scene.world.node(leader).kill();
    pause(2_500);
    scene.world.revive(leader);
    pause(1_000);
    let (tally, _) = scene.close();
    assert_eq!((tally.unsettled, tally.lost), (0, 0), "{tally:?}");
}
