//! Leases across leaders: none ends early, none lives for ever.

use super::asking::{Ask, acquire, client, keep};
use super::scene::Scene;
use crate::clock::{now_us, pause, since};
use kunci_oracle::Told;
use std::time::Duration;
use tokio::time::sleep;

/// C18: ten holders that renew at a third of their TTL keep their leases through an outage that is shorter than that
/// TTL. Through one of twice the TTL nobody else is granted before each holder's own deadline is over, and everybody is
/// served afterwards.
#[test]
fn an_election_ends_no_live_lease() {
    const TTL_MS: u64 = 5_000;
    let mut scene = Scene::quiet("an_election_ends_no_live_lease", 3);
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    let holders: Vec<_> = (0..10_u64)
        .map(|number| {
            let (doors, history) = (doors.clone(), history.clone());
            scene.world.begin_inside(move || async move {
                let (resource, owner) = (format!("c18/{number}"), format!("holder-{number}"));
                let mut caller = client(number, &doors, &history);
                let ask = Ask { resource: &resource, owner: &owner, ttl_ms: TTL_MS, wait_ms: 0 };
                let mine = acquire(&mut caller, ask).await;
                keep(&mut caller, &mine, Duration::from_millis(TTL_MS / 3), 5).await;
                mine
            })
        })
        .collect();
    pause(1_000);
    let leader = scene.world.leader();
    let dead = [leader, scene.world.others(leader)[0]];
    dead.iter().for_each(|number| scene.world.node(*number).kill());
    pause(3_000);
    dead.iter().for_each(|number| scene.world.node(*number).start());
    for holder in holders {
        holder.join().unwrap();
    }
    dead.iter().for_each(|number| scene.world.wait_ready(*number));

    let leader = scene.world.leader();
    let dead = [leader, scene.world.others(leader)[0]];
    dead.iter().for_each(|number| scene.world.node(*number).kill());
    let next: Vec<_> = (0..10_u64)
        .map(|number| {
            let (doors, history) = (doors.clone(), history.clone());
            scene.world.begin_inside(move || async move {
                let (resource, owner) = (format!("c18/{number}"), format!("next-{number}"));
                let ask = Ask { resource: &resource, owner: &owner, ttl_ms: TTL_MS, wait_ms: 30_000 };
                acquire(&mut client(20 + number, &doors, &history), ask).await
            })
        })
        .collect();
    pause(2 * TTL_MS);
    dead.iter().for_each(|number| scene.world.node(*number).start());
    let back_us = now_us();
    for next in next {
        next.join().unwrap();
    }
    let took = since(back_us);
    println!("everybody was served {took:?} after the nodes came back");
    // An election, the failover grace of at most the TTL, and what L1 allows.
    assert!(took < Duration::from_millis(TTL_MS + 3_000), "{took:?}");
    scene.close();
}

/// C17 and L1: a holder dies; the leader dies again and again. Its lease ends after its TTL and at most one failover
/// grace for all leader changes together, not a TTL for each.
#[test]
fn many_leader_changes_give_a_dead_holder_one_grace() {
    const TTL_MS: u64 = 4_000;
    const CHANGES: u64 = 5;
    let mut scene = Scene::quiet("many_leader_changes_give_a_dead_holder_one_grace", 3);
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    let ask = Ask { resource: "c17/r", owner: "a", ttl_ms: TTL_MS, wait_ms: 0 };
    let begun_us = now_us();
    {
        let (doors, history) = (doors.clone(), history.clone());
        scene.world.inside(move || async move { acquire(&mut client(1, &doors, &history), ask).await });
    }
    let b = scene.world.begin_inside(move || async move {
        let ask = Ask { owner: "b", wait_ms: 60_000, ..ask };
        acquire(&mut client(2, &doors, &history), ask).await;
        now_us()
    });
    for _ in 0..CHANGES {
        pause(1_200);
        let leader = scene.world.leader();
        scene.world.node(leader).kill();
        scene.world.leader();
        scene.world.revive(leader);
    }
    let granted_us = b.join().unwrap();
    let took_ms = (granted_us - begun_us) / 1_000;
    println!("B was granted after {took_ms} ms, with {CHANGES} leader changes");
    // TTL, one failover grace of at most the TTL, and a second for each change.
    assert!(took_ms >= TTL_MS, "{took_ms} ms");
    assert!(took_ms <= 2 * TTL_MS + CHANGES * 1_000, "{took_ms} ms");
    scene.close();
}

/// C21: whoever asks for the remaining time, on any node through many leader changes, gets a number within the TTL or a
/// retriable error.
#[test]
fn remaining_time_is_sane_through_every_leader_change() {
    const TTL_MS: u64 = 3_000;
    let mut scene = Scene::quiet("remaining_time_is_sane_through_every_leader_change", 3);
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    let ask = Ask { resource: "c21/r", owner: "a", ttl_ms: TTL_MS, wait_ms: 0 };
    let mine = {
        let (doors, history) = (doors.clone(), history.clone());
        scene.world.inside(move || async move { acquire(&mut client(1, &doors, &history), ask).await })
    };
    let polls: Vec<_> = (1..=3_usize)
        .map(|node| {
            let (doors, history, mine) = (doors.clone(), history.clone(), mine.clone());
            scene.world.begin_inside(move || async move {
                let mut caller = client(10 + node as u64, &doors, &history);
                let status = kunci_oracle::Op::Status { resource: "c21/r".to_owned() };
                let begun_us = now_us();
                let (mut told, mut refused) = (0, 0);
                while since(begun_us) < Duration::from_secs(12) {
                    for op in [&status, &mine.renew()] {
                        match super::asking::answer(caller.at(node, op).await) {
                            Some(answer) if answer.status == 200 => {
                                // The checks look at the number itself.
                                assert!(matches!(
                                    Told::read(op, &answer),
                                    Ok(Told::Status { .. } | Told::Renewed { .. })
                                ));
                                told += 1;
                            }
                            Some(answer) => {
                                assert_eq!(answer.status, 503, "{answer:?}");
                                refused += 1;
                            }
                            None => refused += 1,
                        }
                        sleep(Duration::from_millis(10)).await;
                    }
                }
                (told, refused)
            })
        })
        .collect();
    let mut changes = 0;
    let begun_us = now_us();
    while since(begun_us) < Duration::from_millis(11_000) {
        pause(150);
        let node = changes % 3 + 1;
        scene.world.ask(node, "POST", "/cluster/transfer", Some(serde_json::json!({})));
        changes += 1;
    }
    let seen: Vec<(u64, u64)> = polls.into_iter().map(|poll| poll.join().unwrap()).collect();
    println!("{changes} hand-overs; answers and refusals at each node: {seen:?}");
    assert!(seen.iter().all(|(told, _)| *told > 100), "{seen:?}");
    scene.close();
}
