//! Planned restarts, and a power cut for all.

use super::asking::{Ask, Mine, acquire, client, keep, release, status};
use super::scene::Scene;
use crate::clock::{now_us, pause};
use kunci_oracle::{Op, Told};
use std::time::Duration;

/// How long nobody is served at most while a leader that is asked to stop hands over.
const GAP_MS_MAX: u64 = 50;
/// What the prober needs to try again at another node.
const RETRY_MS: u64 = 20;

/// C50a and C134: all three nodes are stopped by TERM and started again, one after another, under load, the leader of
/// the moment more often than not. Nothing is lost or refused that a client with retries would notice, and a stopping
/// leader hands over with a gap of at most 50 ms.
///
/// The gap is the median of five: what else this machine does can only make one longer.
#[test]
fn a_rolling_restart_is_noticed_by_nobody() {
    let mut scene = Scene::on_small_disks("a_rolling_restart_is_noticed_by_nobody");
    scene.load_lightly();
    let mut gaps = Vec::new();
    for turn in 0..5 {
        pause(700);
        gaps.push(restart(&mut scene, None));
        restart(&mut scene, Some(turn % 3 + 1));
    }
    gaps.sort_unstable();
    println!("longest time without a grant while a leader stopped, more than usual, in ms: {gaps:?}");
    let (tally, _) = scene.close();
    assert_eq!((tally.unsettled, tally.lost), (0, 0), "{tally:?}");
    assert!(gaps[2] <= GAP_MS_MAX + RETRY_MS, "{gaps:?}");
    assert!(gaps[4] <= 500, "{gaps:?}");
}

/// Stops a node, or else the leader, and starts it again: how much longer than usual nobody was granted anything.
fn restart(scene: &mut Scene, number: Option<usize>) -> u64 {
    let number = number.unwrap_or_else(|| scene.world.leader());
    let stopped_us = now_us();
    let usual = scene.longest_gap_ms_between(stopped_us - 700_000, stopped_us);
    let status = scene.world.node(number).stop(Duration::from_secs(10));
    assert!(status.success(), "node {number} ended with {status}:\n{}", scene.world.node(number).words());
    pause(300);
    let gap = scene.longest_gap_ms(stopped_us);
    scene.world.revive(number);
    gap.saturating_sub(usual)
}

/// C50b: all three are killed at once and started in another order, again and again. Holders, queue, outcomes and
/// tokens are all there.
#[test]
fn a_power_cut_for_all_loses_nothing() {
    let mut scene = Scene::busy("a_power_cut_for_all_loses_nothing", 3);
    let ask = Ask { resource: "c50/r", owner: "a", ttl_ms: 60_000, wait_ms: 0 };
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    let mine = {
        let (doors, history) = (doors.clone(), history.clone());
        scene.world.inside(move || async move { acquire(&mut client(1, &doors, &history), ask).await })
    };
    let waiting = scene.world.begin_inside({
        let (doors, history) = (doors.clone(), history.clone());
        move || async move {
            acquire(&mut client(2, &doors, &history), Ask { owner: "b", wait_ms: 55_000, ..ask }).await
        }
    });
    pause(500);
    for order in [[3, 1, 2], [2, 3, 1]] {
        (1..=3).for_each(|number| scene.world.node(number).kill());
        pause(200);
        let started_us = now_us();
        for number in order {
            scene.world.node(number).start();
            pause(150);
        }
        scene.world.leader();
        (1..=3).for_each(|number| scene.world.wait_ready(number));
        pause(500);
        println!("from the start to the next grant: {:?} ms", scene.next_grant_ms(started_us));
    }
    let held = scene.world.inside({
        let (doors, history) = (doors.clone(), history.clone());
        move || async move { status(&mut client(3, &doors, &history), "c50/r").await }
    });
    assert_eq!(held.map(|held| held.token), Some(mine.token));
    scene.world.inside(move || async move {
        let mut a = client(1, &doors, &history);
        keep(&mut a, &mine, Duration::from_millis(10), 1).await;
        let again = acquire(&mut a, ask).await;
        assert_eq!((again.token, &again.lease), (mine.token, &mine.lease));
        release(&mut a, &mine).await;
    });
    waiting.join().unwrap();
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
}

/// C48: the lead is handed over again and again under load. No acknowledged operation is lost, and no request fails for
/// good.
#[test]
fn a_hundred_hand_overs_lose_nothing() {
    let mut scene = Scene::busy("a_hundred_hand_overs_lose_nothing", 3);
    let begun_us = now_us();
    let doors = scene.world.doors();
    let (taken, refused) = scene.world.inside(move || async move {
        let (mut taken, mut refused) = (0, Vec::new());
        for turn in 0..100 {
            let door = doors[turn % doors.len()];
            match crate::client::Caller::ask(door, "POST", "/cluster/transfer", Some(&serde_json::json!({})))
                .await
            {
                Some((200, _)) => taken += 1,
                other => refused.push(other),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        (taken, refused)
    });
    let gap = scene.longest_gap_ms(begun_us);
    println!("{taken} hand-overs; longest time without a grant {gap} ms; refused: {:?}", refused.first());
    assert!(taken >= 80, "only {taken} of 100 hand-overs were taken: {refused:?}");
    assert!(gap < 1_000, "{gap} ms without a grant");
    let (tally, _) = scene.close();
    assert_eq!((tally.unsettled, tally.lost), (0, 0), "{tally:?}");
}

/// C134: whoever waits while the leader is stopped keeps its place and is served by the next.
#[test]
fn waiters_of_a_stopping_leader_keep_their_places() {
    let mut scene = Scene::quiet("waiters_of_a_stopping_leader_keep_their_places", 3);
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    let ask = Ask { resource: "c134/r", owner: "holder", ttl_ms: 20_000, wait_ms: 0 };
    let mine = {
        let (doors, history) = (doors.clone(), history.clone());
        scene.world.inside(move || async move { acquire(&mut client(0, &doors, &history), ask).await })
    };
    let waiters: Vec<_> = (1..=20_u64)
        .map(|number| {
            let (doors, history) = (doors.clone(), history.clone());
            let waiter = scene.world.begin_inside(move || async move {
                let owner = format!("waiter-{number}");
                let mut caller = client(number, &doors, &history);
                let mine = acquire(&mut caller, Ask { owner: &owner, wait_ms: 30_000, ..ask }).await;
                release(&mut caller, &mine).await;
                mine
            });
            wait_queued(&scene, number);
            waiter
        })
        .collect();
    let leader = scene.world.leader();
    scene.world.node(leader).stop(Duration::from_secs(10));
    // Everybody is back before the holder goes.
    pause(2_500);
    scene.world.inside(move || async move { release(&mut client(0, &doors, &history), &mine).await });
    let served: Vec<Mine> = waiters.into_iter().map(|waiter| waiter.join().unwrap()).collect();
    assert!(served.windows(2).all(|pair| pair[0].token < pair[1].token), "served out of order: {served:?}");
    scene.world.revive(leader);
    scene.close();
}

/// Waits until so many are in the queue of `c134/r`.
fn wait_queued(scene: &Scene, count: u64) {
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    scene.world.inside(move || async move {
        let mut caller = client(90, &doors, &history);
        let queue = Op::Queue { resource: "c134/r".to_owned() };
        for _ in 0..200 {
            if let Some((Told::Queue { waiters }, _)) = caller.settle(&queue, 20).await
                && waiters.len() as u64 == count
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{count} waiters aren't in the queue in time");
    });
}
