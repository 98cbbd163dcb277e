//! Waiters that move between nodes, lose their connection or their leader.

use super::asking::{Ask, acquire, client, release};
use super::scene::Scene;
use crate::clock::{pause, since};
use kunci_oracle::{Op, Outcome, Told};
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

const RESOURCE: &str = "queue/r";

fn ask(owner: &str) -> Ask<'_> {
    Ask { resource: RESOURCE, owner, ttl_ms: 20_000, wait_ms: 30_000 }
}

/// Waits at one node with one call, and says what it was answered.
fn wait_at(scene: &Scene, number: u64, owner: &'static str, node: usize) -> JoinHandle<Outcome> {
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    scene.world.begin_inside(move || async move {
        client(number, &doors, &history).at(node, &ask(owner).op()).await
    })
}

fn told(owner: &str, outcome: Outcome) -> Told {
    let Outcome::Answer(answer) = outcome else { panic!("{owner} has no answer: {outcome:?}") };
    Told::read(&ask(owner).op(), &answer).unwrap()
}

fn token(owner: &str, outcome: Outcome) -> u64 {
    match told(owner, outcome) {
        Told::Granted { token, .. } => token,
        other => panic!("{owner} isn't granted: {other:?}"),
    }
}

/// Owners in the queue, in order, and whether each is attached.
fn queue(scene: &Scene) -> Vec<(String, bool)> {
    queue_through(scene, scene.world.doors())
}

fn queue_through(scene: &Scene, doors: Vec<SocketAddr>) -> Vec<(String, bool)> {
    let history = scene.run.history.clone();
    scene.world.inside(move || async move {
        let op = Op::Queue { resource: RESOURCE.to_owned() };
        match client(99, &doors, &history).settle(&op, 100).await {
            Some((Told::Queue { waiters }, _)) => waiters,
            other => panic!("no queue: {other:?}"),
        }
    })
}

fn wait_queue(scene: &Scene, owners: &[&str]) {
    let is_so = || {
        let waiters = queue(scene);
        waiters.iter().map(|(owner, _)| owner.as_str()).eq(owners.iter().copied()).then_some(())
    };
    crate::clock::wait_for(Duration::from_secs(5), is_so)
        .unwrap_or_else(|| panic!("the queue is {:?}, expected {owners:?}", queue(scene)));
}

fn hold(scene: &Scene) -> super::asking::Mine {
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    scene.world.inside(move || async move {
        acquire(&mut client(1, &doors, &history), Ask { wait_ms: 0, ..ask("holder") }).await
    })
}

fn let_go(scene: &Scene, doors: Vec<SocketAddr>, mine: super::asking::Mine) {
    let history = scene.run.history.clone();
    scene.world.inside(move || async move { release(&mut client(1, &doors, &history), &mine).await });
}

/// C62: a waiter whose connection breaks keeps its place, and takes it up again through another node; whoever is behind
/// it isn't delayed.
#[test]
fn a_waiter_keeps_its_place_when_it_moves_to_another_node() {
    let mut scene = Scene::quiet("a_waiter_keeps_its_place_when_it_moves_to_another_node", 3);
    let mine = hold(&scene);
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    let b = scene.world.begin_inside(move || async move {
        let mut caller = client(2, &doors, &history);
        caller.at(1, &Op::Status { resource: RESOURCE.to_owned() }).await;
        // Its one call is cut off after a second, and comes back two seconds later at another node.
        drop(caller.once_within(&ask("b").op(), Duration::from_millis(1_000)).await);
        tokio::time::sleep(Duration::from_millis(2_000)).await;
        caller.at(2, &ask("b").op()).await
    });
    wait_queue(&scene, &["b"]);
    let c = wait_at(&scene, 3, "c", 3);
    wait_queue(&scene, &["b", "c"]);
    pause(1_500);
    assert_eq!(queue(&scene), [("b".to_owned(), false), ("c".to_owned(), true)]);
    pause(2_000);
    assert_eq!(queue(&scene), [("b".to_owned(), true), ("c".to_owned(), true)]);

    let_go(&scene, scene.world.doors(), mine);
    let first = b.join().unwrap();
    let Told::Granted { token: first_token, lease, .. } = told("b", first) else { panic!("b isn't granted") };
    let mine = super::asking::Mine { resource: RESOURCE.to_owned(), token: first_token, lease };
    let_go(&scene, scene.world.doors(), mine);
    assert!(token("c", c.join().unwrap()) > first_token);
    scene.close();
}

/// C59: the same request waits through two nodes at once: one place; the older call is told so, the newer one gets the
/// grant.
#[test]
fn the_newer_of_two_calls_of_one_request_gets_the_answer() {
    let mut scene = Scene::quiet("the_newer_of_two_calls_of_one_request_gets_the_answer", 3);
    let mine = hold(&scene);
    let older = wait_at(&scene, 2, "b", 1);
    wait_queue(&scene, &["b"]);
    let newer = wait_at(&scene, 3, "b", 2);
    let Told::Refused(refused) = told("b", older.join().unwrap()) else {
        panic!("the older call is granted")
    };
    assert_eq!(refused.code, "superseded");
    wait_queue(&scene, &["b"]);
    let begun_us = crate::clock::now_us();
    let_go(&scene, scene.world.doors(), mine);
    token("b", newer.join().unwrap());
    assert!(since(begun_us) < Duration::from_millis(500), "the grant took {:?}", since(begun_us));
    scene.close();
}

/// C62, S6 and section 3: the leader dies with two waiters. Both come back to any node with their places, and the
/// first is served first.
#[test]
fn waiters_keep_their_places_when_the_leader_dies() {
    let mut scene = Scene::quiet("waiters_keep_their_places_when_the_leader_dies", 3);
    let mine = hold(&scene);
    let waiter = |number: u64, owner: &'static str| {
        let (doors, history) = (scene.world.doors(), scene.run.history.clone());
        scene.world.begin_inside(move || async move {
            let mut caller = client(number, &doors, &history);
            let mine = acquire(&mut caller, ask(owner)).await;
            release(&mut caller, &mine).await;
            mine.token
        })
    };
    let b = waiter(2, "b");
    wait_queue(&scene, &["b"]);
    let c = waiter(3, "c");
    wait_queue(&scene, &["b", "c"]);
    let leader = scene.world.leader();
    scene.world.node(leader).kill();
    scene.world.leader();
    pause(2_500);
    assert_eq!(queue(&scene), [("b".to_owned(), true), ("c".to_owned(), true)]);
    let_go(&scene, scene.world.doors(), mine);
    let (first, second) = (b.join().unwrap(), c.join().unwrap());
    assert!(first < second, "c got {second} before b got {first}");
    scene.close();
}

/// C54 and L3 through a follower: a waiter whose client is gone is passed over at once and dropped after the grace.
#[test]
fn a_waiter_that_hangs_up_at_a_follower_holds_nobody_up() {
    let mut scene = Scene::quiet("a_waiter_that_hangs_up_at_a_follower_holds_nobody_up", 3);
    let mine = hold(&scene);
    let leader = scene.world.leader();
    let follower = scene.world.others(leader)[0];
    let (doors, history) = (scene.world.doors(), scene.run.history.clone());
    scene.world.inside(move || async move {
        let mut caller = client(2, &doors, &history);
        caller.at(follower, &Op::Status { resource: RESOURCE.to_owned() }).await;
        drop(caller.once_within(&ask("gone").op(), Duration::from_millis(500)).await);
    });
    let c = wait_at(&scene, 3, "c", follower);
    wait_queue(&scene, &["gone", "c"]);
    pause(300);
    assert_eq!(queue(&scene), [("gone".to_owned(), false), ("c".to_owned(), true)]);
    let begun_us = crate::clock::now_us();
    let_go(&scene, scene.world.doors(), mine);
    token("c", c.join().unwrap());
    assert!(since(begun_us) < Duration::from_millis(500), "the grant took {:?}", since(begun_us));
    scene.close();
}

/// Waits on a connection to a node's native door. What comes back stays open and unread.
fn wait_natively(scene: &mut Scene, node: usize, owner: &str) -> TcpStream {
    let door = scene.world.node(node).native();
    let line = format!("A {RESOURCE} 3 60 req={owner}-{RESOURCE} owner={owner}\n");
    scene.world.inside(move || async move {
        let mut connection = TcpStream::connect(door).unwrap();
        connection.write_all(line.as_bytes()).unwrap();
        connection
    })
}

/// C54 (b), L1 and L3 on the native door: a waiter's host vanishes, and no packet says so. Whoever is behind it is held up for
/// the vanished one's lease at most; and not at all once its connection was found to be dead, within 20 s.
#[test]
fn a_waiter_whose_host_vanishes_holds_nobody_up_for_long() {
    let mut scene = Scene::quiet("a_waiter_whose_host_vanishes_holds_nobody_up_for_long", 3);
    let leader = scene.world.leader();
    let follower = scene.world.others(leader)[0];
    // Only those who wait at the leader vanish; the others are served through a follower.
    let through = vec![scene.world.doors()[follower - 1]];
    let waiter = |scene: &Scene, number: u64, owner: &'static str| {
        let (doors, history) = (through.clone(), scene.run.history.clone());
        let ask = Ask { ttl_ms: 60_000, wait_ms: 60_000, ..ask(owner) };
        let waiting = async move || acquire(&mut client(number, &doors, &history), ask).await;
        scene.world.begin_inside(waiting)
    };
    let is_queue = |scene: &Scene, expected: &[(&str, bool)], within: Duration| {
        let is_so = || {
            let queue = queue_through(scene, through.clone());
            let queue = queue.iter().map(|(owner, attached)| (owner.as_str(), *attached));
            queue.eq(expected.iter().copied()).then_some(())
        };
        let seen = crate::clock::wait_for(within, is_so);
        assert!(seen.is_some(), "{:?}, expected {expected:?}", queue_through(scene, through.clone()));
    };
    let soon = Duration::from_secs(5);
    let mine = hold(&scene);

    // The grant goes out to somebody who is gone, before anybody can know.
    let gone = wait_natively(&mut scene, leader, "gone");
    is_queue(&scene, &[("gone", true)], soon);
    let c = waiter(&scene, 2, "c");
    is_queue(&scene, &[("gone", true), ("c", true)], soon);
    scene.world.network().cut_clients(leader);
    let begun_us = crate::clock::now_us();
    let_go(&scene, through.clone(), mine);
    let mine = c.join().unwrap();
    let held_up = since(begun_us);
    println!("held up by a grant that nobody heard: {held_up:?}");
    assert!(
        held_up > Duration::from_millis(2_900),
        "{held_up:?}: the grant was to go to the one who vanished"
    );
    assert!(held_up < Duration::from_millis(4_500), "{held_up:?}, for a lease of 3 s");
    scene.world.network().heal();
    drop(gone);

    // The connection is found to be dead while its request still waits.
    let leader = scene.world.leader();
    assert!(through[0] != scene.world.doors()[leader - 1], "the lead has moved to the follower");
    let gone = wait_natively(&mut scene, leader, "gone-too");
    is_queue(&scene, &[("gone-too", true)], soon);
    let d = waiter(&scene, 3, "d");
    is_queue(&scene, &[("gone-too", true), ("d", true)], soon);
    scene.world.network().cut_clients(leader);
    let begun_us = crate::clock::now_us();
    is_queue(&scene, &[("gone-too", false), ("d", true)], Duration::from_secs(25));
    println!("found to be dead after {:?}", since(begun_us));
    assert!(since(begun_us) < Duration::from_millis(20_500), "{:?}, within 20 s", since(begun_us));
    let begun_us = crate::clock::now_us();
    let_go(&scene, through.clone(), mine);
    let mine = d.join().unwrap();
    assert!(since(begun_us) < Duration::from_millis(1_000), "held up for {:?}", since(begun_us));
    let_go(&scene, through.clone(), mine);
    drop(gone);
    scene.world.network().heal();
    scene.close();
}
