//! Disks that are slow, fail, hang or are full.

use super::asking::{Ask, acquire, answer, client, release};
use super::scene::Scene;
use crate::client::Caller;
use crate::clock::{now_us, pause, wait_for};
use crate::world::DiskFault;
use kunci_oracle::{Answer, Told};
use std::time::Duration;

/// A follower whose syncs take 300 ms is no hindrance: the quorum is the other two.
#[test]
fn a_slow_disk_of_one_follower_slows_nobody_down() {
    let mut scene = Scene::busy("a_slow_disk_of_one_follower_slows_nobody_down", 3);
    let (leader, before) = (scene.world.leader(), scene.takeovers());
    let slow = scene.world.others(leader)[0];
    let since_us = now_us();
    {
        let _slow = scene.world.node(slow).spoil_disk(DiskFault::Slow(Duration::from_millis(300)));
        pause(6_000);
    }
    let gap = scene.longest_gap_ms(since_us);
    println!("longest time without a grant: {gap} ms");
    assert!(gap < 500, "{gap} ms without a grant");
    assert_eq!((scene.world.leader(), scene.takeovers()), (leader, before));
    pause(1_000);
    let (tally, _) = scene.close();
    assert_eq!((tally.unsettled, tally.lost), (0, 0), "{tally:?}");
}

/// S4: a node whose sync fails stops at once and in plain words, and acknowledges nothing on the strength of it; the
/// others go on, and it comes back with what it had.
#[test]
fn a_failed_sync_stops_the_node_and_not_the_cluster() {
    let mut scene = Scene::busy("a_failed_sync_stops_the_node_and_not_the_cluster", 3);
    for is_leader in [false, true] {
        let leader = scene.world.leader();
        let bad = if is_leader { leader } else { scene.world.others(leader)[0] };
        let since_us = now_us();
        let spoilt = scene.world.node(bad).spoil_disk(DiskFault::Fails);
        let ended = scene.world.node(bad).wait(Duration::from_secs(10));
        drop(spoilt);
        let words = scene.world.node(bad).words();
        let status = ended.unwrap_or_else(|| panic!("node {bad} goes on with a failed sync:\n{words}"));
        assert_eq!(status.code(), Some(70), "{words}");
        pause(1_000);
        let gap = scene.next_grant_ms(since_us);
        assert!(gap.is_some_and(|gap| gap < 1_500), "the others don't go on: {gap:?} ms");
        scene.world.revive(bad);
        pause(500);
    }
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
}

/// A leader whose disk hangs while its heartbeats go on gives way.
#[test]
fn a_leader_whose_disk_hangs_gives_way() {
    let mut scene = Scene::busy("a_leader_whose_disk_hangs_gives_way", 3);
    let leader = scene.world.leader();
    let hung_us = now_us();
    let hung = scene.world.node(leader).spoil_disk(DiskFault::Slow(Duration::from_secs(60)));
    let next = wait_for(Duration::from_secs(10), || scene.world.leader_now().filter(|next| *next != leader));
    let next = next.unwrap_or_else(|| panic!("nobody else leads after 10 s"));
    pause(1_500);
    let gap = scene.longest_gap_ms(hung_us);
    println!("node {next} leads; longest time without a grant: {gap} ms");
    assert!(gap < 6_000, "{gap} ms without a grant");
    drop(hung);
    pause(2_000);
    scene.world.leader();
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
}

/// C108: below the reserve of 64 MiB new acquires are refused as `storage_low`; renewals, releases and expiries go on;
/// with room again so do acquires.
#[test]
fn a_low_disk_refuses_acquires_and_nothing_else() {
    let mut scene = Scene::on_small_disks("a_low_disk_refuses_acquires_and_nothing_else");
    let leader = scene.world.leader();
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    let ask = Ask { resource: "disk/held", owner: "a", ttl_ms: 5_000, wait_ms: 0 };
    let mine = {
        let (doors, history) = (doors.clone(), history.clone());
        scene.world.inside(move || async move { acquire(&mut client(1, &doors, &history), ask).await })
    };
    scene.world.disk(leader).fill_to(40);
    let low = {
        let (doors, history) = (doors.clone(), history.clone());
        scene.world.inside(move || async move {
            let mut caller = client(1, &doors, &history);
            let refused = wait_low(&mut caller, leader).await;
            if let Some(answer) = &refused {
                assert_eq!((answer.status, &answer.body["applied"]), (503, &"no".into()), "{answer:?}");
                let told = caller.settle(&mine.renew(), 20).await;
                assert!(
                    matches!(told, Some((Told::Renewed { .. }, _))),
                    "not renewed on a low disk: {told:?}"
                );
                release(&mut caller, &mine).await;
            }
            refused
        })
    };
    assert!(low.is_some(), "no acquire was refused as storage_low with 40 MiB left");
    scene.world.disk(leader).empty();
    let taken = scene.world.inside(move || async move {
        wait_granted(&mut client(1, &doors, &history), Ask { resource: "disk/after", ..ask }).await
    });
    assert!(taken, "no acquire is taken although there is room again");
    scene.close();
}

/// C108: a leader whose disk is full to the last byte gives way or stops in plain words, the others go on, and it
/// comes back once there is room.
#[test]
fn a_full_disk_stops_one_node_and_loses_nothing() {
    let mut scene = Scene::on_small_disks("a_full_disk_stops_one_node_and_loses_nothing");
    scene.load();
    pause(1_000);
    let leader = scene.world.leader();
    scene.world.disk(leader).fill_to(0);
    let full_us = now_us();
    let ended = scene.world.node(leader).wait(Duration::from_secs(8));
    println!("the full node ended: {ended:?}");
    pause(1_500);
    let gap = scene.next_grant_ms(full_us);
    assert!(gap.is_some_and(|gap| gap < 10_000), "the others don't go on: {gap:?}");
    scene.world.disk(leader).empty();
    if let Some(status) = ended {
        assert_eq!(status.code(), Some(70), "{}", scene.world.node(leader).words());
        scene.world.revive(leader);
    }
    pause(1_000);
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
}

async fn wait_low(caller: &mut Caller, node: usize) -> Option<Answer> {
    for turn in 0..200 {
        let resource = format!("disk/new-{turn}");
        let ask = Ask { resource: &resource, owner: "a", ttl_ms: 5_000, wait_ms: 0 };
        let refused = answer(caller.at(node, &ask.op()).await);
        if let Some(answer) = refused.filter(|answer| answer.code() == Some("storage_low")) {
            return Some(answer);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    None
}

async fn wait_granted(caller: &mut Caller, ask: Ask<'_>) -> bool {
    for _ in 0..100 {
        if let Some((Told::Granted { .. }, _)) = caller.settle(&ask.op(), 1).await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    false
}
