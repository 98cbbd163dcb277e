//! Faults of all kinds, chosen by the seed.

use super::scene::Scene;
use crate::clock::{now_us, pause, since};
use crate::world::{DiskFault, Way, World};
use kunci_oracle::Random;
use std::time::Duration;

/// How long it goes on. A soak sets `KUNCI_FAULTS_SECONDS`.
const SECONDS: u64 = 40;

/// S1 to S8 under whatever comes: kills, stalls, cuts of all kinds, losses, slow disks, planned stops, hand-overs and
/// power cuts, one after another and sometimes two at a time; and once everything is mended, everybody is served again.
#[test]
fn no_mixture_of_faults_breaks_a_promise() {
    let mut scene = Scene::busy("no_mixture_of_faults_breaks_a_promise", 3);
    let mut random = Random::new(scene.run.seed(), 5_000);
    let seconds = std::env::var("KUNCI_FAULTS_SECONDS").ok().and_then(|text| text.parse().ok());
    let long = Duration::from_secs(seconds.unwrap_or(SECONDS));
    let begun_us = now_us();
    while since(begun_us) < long {
        pause(random.between(200, 1_500));
        let count = if random.percent(25) { 2 } else { 1 };
        for _ in 0..count {
            one_fault(&mut scene.world, &mut random);
        }
        pause(random.between(100, 2_500));
        mend(&mut scene.world);
    }
    let mended_us = now_us();
    pause(3_000);
    let next = scene.next_grant_ms(mended_us);
    println!("from the last repair to the next grant: {next:?} ms");
    assert!(next.is_some_and(|next| next < 2_500), "{next:?}");
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
}

fn one_fault(world: &mut World, random: &mut Random) {
    let number = usize::try_from(random.between(1, 3)).unwrap();
    let others = world.others(number);
    let other = others[usize::try_from(random.between(0, 1)).unwrap()];
    let kind = random.between(0, 11);
    println!("{} ms: fault {kind} on node {number}, with {other}", now_us() / 1_000);
    match kind {
        0 | 1 => world.node(number).kill(),
        2 if world.node(number).is_answering() => world.node(number).pause(),
        3 => world.network().isolate(number, &others),
        4 => world.network().cut(number, other, Way::Both),
        5 => world.network().cut(number, other, Way::There),
        6 => world.network().lose(number, other, 40),
        7 => world.network().cut_clients(number),
        8 if world.node(number).is_answering() => {
            let _slow = world.node(number).spoil_disk(DiskFault::Slow(Duration::from_millis(400)));
            pause(random.between(200, 1_500));
        }
        9 if world.node(number).is_answering() => drop(world.node(number).stop(Duration::from_secs(15))),
        // Refused or not: nobody may notice.
        10 => drop(world.ask(number, "POST", "/cluster/transfer", Some(serde_json::json!({})))),
        11 if random.percent(30) => (1..=world.count()).for_each(|number| world.node(number).kill()),
        _ => {}
    }
}

fn mend(world: &mut World) {
    world.network().heal();
    for number in 1..=world.count() {
        world.node(number).go_on_or_start();
    }
}
