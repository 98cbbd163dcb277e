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

/// Followers whose syncs take 400 ms let everybody wait, and are no reason to send anybody away: their word that they
/// heard the leader waits for their disks, and comes later than an election would take.
#[test]
fn slow_disks_of_both_followers_let_everybody_wait_and_refuse_nobody() {
    let mut scene = Scene::busy("slow_disks_of_both_followers_let_everybody_wait_and_refuse_nobody", 3);
    let (leader, before) = (scene.world.leader(), scene.takeovers());
    let slow = scene.world.others(leader);
    let since_us = now_us();
    {
        let _slow: Vec<_> = slow
            .iter()
            .map(|node| scene.world.node(*node).spoil_disk(DiskFault::Slow(Duration::from_millis(400))))
            .collect();
        pause(6_000);
    }
    let calls = scene.run.history.calls();
    let sent_away = calls.iter().filter(|call| {
        call.began_us > since_us
            && call.answer().is_some_and(|answer| matches!(answer.code(), Some("no_leader" | "no_quorum")))
    });
    let sent_away: Vec<_> = sent_away.collect();
    assert!(sent_away.is_empty(), "{} were sent away, first {:?}", sent_away.len(), sent_away[0]);
    assert_eq!((scene.world.leader(), scene.takeovers()), (leader, before));
    // The load's shortest leases may well end meanwhile.
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
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

/// C108: a leader with less room than the reserve of 64 MiB gives way to one that has it, and acquires go on.
#[test]
fn a_leader_with_a_low_disk_gives_way() {
    let mut scene = Scene::on_small_disks("a_leader_with_a_low_disk_gives_way");
    scene.load();
    pause(1_000);
    let low = scene.world.leader();
    scene.world.disk(low).fill_to(40);
    let next = wait_for(Duration::from_secs(10), || scene.world.leader_now().filter(|next| *next != low));
    assert!(next.is_some(), "node {low} still leads after 10 s with 40 MiB left");
    let since_us = now_us();
    pause(3_000);
    assert_ne!(scene.world.leader(), low, "the lead went back to the node with the low disk");
    let gap = scene.longest_gap_ms(since_us);
    assert!(gap < 1_500, "{gap} ms without a grant");
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
}

/// C108: with less room than the reserve of 64 MiB on a quorum's disks new acquires are refused as `storage_low`;
/// renewals, releases and expiries go on; with room again so do acquires.
#[test]
fn low_disks_of_a_quorum_refuse_acquires_and_nothing_else() {
    let mut scene = Scene::on_small_disks("low_disks_of_a_quorum_refuse_acquires_and_nothing_else");
    let leader = scene.world.leader();
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    let ask = Ask { resource: "disk/held", owner: "a", ttl_ms: 5_000, wait_ms: 0 };
    let mine = {
        let (doors, history) = (doors.clone(), history.clone());
        scene.world.inside(move || async move { acquire(&mut client(1, &doors, &history), ask).await })
    };
    let low = [scene.world.others(leader)[0], leader];
    low.iter().for_each(|node| scene.world.disk(*node).fill_to(40));
    let refused = {
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
    assert!(
        refused.is_some(),
        "no acquire was refused as storage_low with 40 MiB left on two of three nodes"
    );
    low.iter().for_each(|node| scene.world.disk(*node).empty());
    let taken = scene.world.inside(move || async move {
        wait_granted(&mut client(1, &doors, &history), Ask { resource: "disk/after", ..ask }).await
    });
    assert!(taken, "no acquire is taken although there is room again");
    scene.close();
}

/// C108: a leader whose disk is full to the last byte gives way, the others go on, and whenever the node stops for want
/// of room it says so, and comes back once there is some.
#[test]
fn a_full_disk_stops_one_node_and_loses_nothing() {
    let mut scene = Scene::on_small_disks("a_full_disk_stops_one_node_and_loses_nothing");
    scene.load();
    pause(1_000);
    let full = scene.world.leader();
    scene.world.disk(full).fill_to(0);
    let full_us = now_us();
    let next = wait_for(Duration::from_secs(10), || scene.world.leader_now().filter(|next| *next != full));
    assert!(next.is_some(), "node {full} still leads after 10 s without any room");
    pause(3_000);
    let gap = scene.next_grant_ms(full_us);
    assert!(gap.is_some_and(|gap| gap < 10_000), "the others don't go on: {gap:?}");
    // It stops with the first entry that finds no room, which its log file's last block may put off.
    let ended = scene.world.node(full).wait(Duration::from_secs(20));
    let words = scene.world.node(full).words();
    let status = ended.unwrap_or_else(|| panic!("node {full} goes on without any room:\n{words}"));
    assert_eq!(status.code(), Some(70), "{words}");
    scene.world.disk(full).empty();
    scene.world.revive(full);
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
