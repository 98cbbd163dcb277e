//! A node is cut off from the other nodes, and clients still reach it.

use super::asking::{Ask, acquire, answer, client};
use super::scene::Scene;
use crate::clock::{now_us, pause, since};
use crate::world::Way;
use kunci_oracle::{Op, Told};
use std::time::Duration;

/// A refusal for want of a quorum comes at once: so long at most, from the node itself.
const AT_ONCE_MS: u64 = 300;

/// C20: a leader that lost its quorum acknowledges no renewal any more. The holder that only reaches it loses its
/// lease by its own count before anybody else is granted, and from soon after the cut it is refused at once.
#[test]
fn an_isolated_leader_acknowledges_nothing() {
    const TTL_MS: u64 = 2_000;
    let mut scene = Scene::busy("an_isolated_leader_acknowledges_nothing", 3);
    let leader = scene.world.leader();
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    let ask = Ask { resource: "c20/r", owner: "a", ttl_ms: TTL_MS, wait_ms: 0 };
    let mine = {
        let (doors, history) = (doors.clone(), history.clone());
        scene.world.inside(move || async move { acquire(&mut client(1, &doors, &history), ask).await })
    };
    let others = scene.world.others(leader);
    scene.world.network().isolate(leader, &others);
    let cut_us = now_us();

    let b = {
        let (doors, history) = (doors.clone(), history.clone());
        let doors: Vec<_> = others.iter().map(|other| doors[other - 1]).collect();
        scene.world.begin_inside(move || async move {
            let ask = Ask { owner: "b", wait_ms: 10_000, ..ask };
            acquire(&mut client(2, &doors, &history), ask).await
        })
    };
    let renew = mine.renew();
    scene.world.inside(move || async move {
        let mut a = client(1, &doors, &history);
        while since(cut_us) < Duration::from_millis(3 * TTL_MS) {
            let asked_us = now_us();
            let answer = answer(a.at(leader, &renew).await);
            assert!(
                answer.as_ref().is_none_or(|answer| answer.status != 200),
                "renewed after the cut: {answer:?}"
            );
            if asked_us > cut_us + 2_000_000 {
                let answer = answer.expect("an isolated leader answers");
                let took_ms = since(asked_us).as_millis();
                assert!(took_ms <= u128::from(AT_ONCE_MS), "refused after {took_ms} ms: {answer:?}");
                assert!(
                    ["no_quorum", "no_leader"].contains(&answer.code().unwrap_or_default()),
                    "{answer:?}"
                );
                assert!(answer.body["retryAfterMs"].is_u64(), "{answer:?}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let theirs = b.join().unwrap();
    assert!(theirs.token > mine.token);
    scene.world.network().heal();
    pause(1_500);
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
}

/// S4: a minority refuses at once, whoever asks it for what; the majority goes on.
#[test]
fn a_minority_refuses_at_once_and_the_majority_goes_on() {
    let mut scene = Scene::busy("a_minority_refuses_at_once_and_the_majority_goes_on", 3);
    let leader = scene.world.leader();
    let others = scene.world.others(leader);
    let alone = others[0];
    let cut_us = now_us();
    scene.world.network().isolate(alone, &scene.world.others(alone));
    pause(2_000);
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    scene.world.inside(move || async move {
        let mut caller = client(1, &doors, &history);
        let ask = Ask { resource: "minority/r", owner: "a", ttl_ms: 2_000, wait_ms: 0 };
        let waits = Ask { resource: "minority/s", wait_ms: 5_000, ..ask };
        let read = Op::Status { resource: "minority/r".to_owned() };
        for op in [ask.op(), waits.op(), read].iter().cycle().take(30) {
            let asked_us = now_us();
            let answer = answer(caller.at(alone, op).await).expect("a node without a quorum answers");
            let took_ms = since(asked_us).as_millis();
            assert_eq!(answer.status, 503, "{answer:?}");
            assert!(["no_quorum", "no_leader"].contains(&answer.code().unwrap_or_default()), "{answer:?}");
            assert!(took_ms <= u128::from(AT_ONCE_MS), "refused after {took_ms} ms: {answer:?}");
        }
    });
    let gap = scene.longest_gap_ms(cut_us);
    println!("longest time without a grant: {gap} ms");
    assert!(gap < 1_000, "the majority stopped for {gap} ms");
    scene.world.network().heal();
    pause(1_000);
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
}

/// C40b: a node that returns from isolation follows; it makes no election and the leader stays.
#[test]
fn isolation_heals_without_a_leader_change() {
    let mut scene = Scene::busy("isolation_heals_without_a_leader_change", 3);
    let (leader, before) = (scene.world.leader(), scene.takeovers());
    let alone = scene.world.others(leader)[1];
    scene.world.network().isolate(alone, &scene.world.others(alone));
    pause(6_000);
    scene.world.network().heal();
    let healed_us = now_us();
    pause(3_000);
    assert_eq!(scene.world.leader(), leader);
    assert_eq!(scene.takeovers(), before, "there was an election");
    let gap = scene.longest_gap_ms(healed_us);
    println!("longest time without a grant after the cut: {gap} ms");
    assert!(gap < 500, "{gap} ms without a grant");
    scene.world.wait_ready(alone);
    scene.close();
}

/// S4: three nodes of which none reaches another acknowledge nothing, and refuse at once; together again they go on.
#[test]
fn three_lonely_nodes_acknowledge_nothing() {
    let mut scene = Scene::busy("three_lonely_nodes_acknowledge_nothing", 3);
    pause(1_000);
    for number in 1..=3 {
        scene.world.network().isolate(number, &scene.world.others(number));
    }
    // What was on its way may still arrive.
    pause(50);
    let cut_us = now_us();
    pause(3_000);
    let granted = scene.next_grant_ms(cut_us);
    scene.world.network().heal();
    assert_eq!(granted, None, "a grant without a quorum");
    let healed_us = now_us();
    pause(2_500);
    let next = scene.next_grant_ms(healed_us);
    println!("from the end of the cut to the next grant: {next:?} ms");
    assert!(next.is_some_and(|next| next < 2_000), "{next:?}");
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
}

/// C45: two of three nodes see the leader, the third sees one of them, or loses a third of all packets. There is
/// one stable leader after a bounded number of elections, and clients are served all the time.
#[test]
fn a_partial_cut_leaves_a_stable_leader() {
    let mut scene = Scene::busy("a_partial_cut_leaves_a_stable_leader", 3);
    let leader = scene.world.leader();
    let blind = scene.world.others(leader)[0];
    for (from, to, way) in
        [(leader, blind, Way::Both), (leader, blind, Way::There), (blind, leader, Way::There)]
    {
        let before = scene.takeovers();
        scene.world.network().cut(from, to, way);
        let cut_us = now_us();
        pause(5_000);
        let (elections, gap) = (scene.takeovers() - before, scene.longest_gap_ms(cut_us));
        println!("cut {from} to {to}, {way:?}: {elections} elections, longest time without a grant {gap} ms");
        assert!(elections <= 2, "{elections} elections in 5 s");
        assert!(gap < 2_000, "{gap} ms without a grant");
        scene.world.network().heal();
        pause(1_500);
    }

    let (leader, before) = (scene.world.leader(), scene.takeovers());
    let weak = scene.world.others(leader)[0];
    scene.world.network().lose(leader, weak, 30);
    let lossy_us = now_us();
    pause(8_000);
    let (elections, gap) = (scene.takeovers() - before, scene.longest_gap_ms(lossy_us));
    println!("30 % loss: {elections} elections, longest time without a grant {gap} ms");
    assert!(elections <= 3, "{elections} elections in 8 s");
    assert!(gap < 2_500, "{gap} ms without a grant");
    scene.world.network().heal();
    pause(1_000);
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
}

/// C40c and C45: a node that can send and not receive deposes nobody.
#[test]
fn a_node_that_only_sends_changes_no_leader() {
    let mut scene = Scene::busy("a_node_that_only_sends_changes_no_leader", 3);
    let (leader, before) = (scene.world.leader(), scene.takeovers());
    let deaf = scene.world.others(leader)[0];
    for other in scene.world.others(deaf) {
        scene.world.network().cut(other, deaf, Way::There);
    }
    let cut_us = now_us();
    pause(5_000);
    let gap = scene.longest_gap_ms(cut_us);
    scene.world.network().heal();
    pause(2_000);
    println!("longest time without a grant: {gap} ms");
    assert_eq!(scene.takeovers(), before, "there was an election");
    assert_eq!(scene.world.leader(), leader);
    assert!(gap < 1_000, "{gap} ms without a grant");
    scene.close();
}

/// C79 from the client's side: nodes that can't be reached by clients are left out, and everything goes on.
#[test]
fn clients_that_lose_the_leader_are_served_through_the_others() {
    let mut scene = Scene::busy("clients_that_lose_the_leader_are_served_through_the_others", 3);
    let (leader, before) = (scene.world.leader(), scene.takeovers());
    scene.world.network().cut_clients(leader);
    let cut_us = now_us();
    pause(4_000);
    let gap = scene.longest_gap_ms(cut_us);
    println!("longest time without a grant: {gap} ms");
    assert!(gap < 1_500, "{gap} ms without a grant");
    assert_eq!(scene.takeovers(), before, "clients have no say in who leads");
    scene.world.network().heal();
    pause(500);
    let calls = scene.run.history.calls();
    let served = calls.iter().filter(|call| call.began_us > cut_us && matches!(&call.op, Op::Acquire { .. }));
    let through: std::collections::BTreeSet<usize> = served
        .filter(|call| {
            call.answer()
                .is_some_and(|answer| matches!(Told::read(&call.op, answer), Ok(Told::Granted { .. })))
        })
        .map(|call| call.node)
        .collect();
    assert!(scene.world.others(leader).iter().all(|other| through.contains(other)), "{through:?}");
    scene.close();
}
