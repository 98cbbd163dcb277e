//! A thousand clients of `kunci-client` on three nodes, of which one after another is killed and started again.
//!
//! CI runs it for a minute; `KUNCI_SOAK_SECONDS` makes it last for hours, in which it needs no more memory than in one.
//! Owns: the nodes' deaths, the progress lines and the closing table. Never: looks into a client; what is checked is
//! what a user of the library sees, what goes over the wire, and what the nodes and the kernel say.

mod beliefs;
mod member;
mod renewals;
mod tally;
mod vitals;

use super::scene::Scene;
use crate::clock::{now_us, pause, since, wait_for};
use crate::run::Run;
use crate::world::World;
use beliefs::Beliefs;
use kunci_client::Client;
use kunci_oracle::Random;
use member::{Shared, live};
use renewals::Renewals;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use vitals::Vitals;

/// How long it goes on unless `KUNCI_SOAK_SECONDS` says otherwise.
const SECONDS: u64 = 60;
const CLIENTS: u64 = 1_000;
/// Each with a thread and a runtime of its own.
const CROWDS: u64 = 4;
/// One connection of each client to each node, and room for the rest.
const FILES: u64 = 8_192;
/// When nobody has got a lock for so long, the cluster is down. How soon a dead leader is followed is measured elsewhere:
/// here the nodes share two cores with a thousand clients.
const GAP_MAX: Duration = Duration::from_secs(20);
/// A thousand clients that get fewer locks in a second have met with something else than a node's death.
const LOCKS_PER_SECOND_MIN: u64 = 5;
/// More memory than this, in MiB, isn't what a few hundred leases and a thousand connections need.
const MEMORY_MAX_MIB: u64 = 512;

/// K11, C64, C122, S1, S2: however often nodes die, no two clients believe in one lock at one time, tokens grow, renewals
/// keep to their schedule, and at the end nothing is left: no waiter, lease, task, connection or file.
#[test]
fn a_thousand_clients_outlive_every_node_and_leave_nothing_behind() {
    more_files();
    let mut scene = Scene::quiet("a_thousand_clients_outlive_every_node_and_leave_nothing_behind", 3);
    let own_before = Vitals::own();
    let nodes_before = vitals(&mut scene.world);
    let long = Duration::from_secs(match std::env::var("KUNCI_SOAK_SECONDS") {
        Ok(text) => text.parse().expect("KUNCI_SOAK_SECONDS is a whole number"),
        Err(_) => SECONDS,
    });
    let shared = Shared {
        doors: scene.world.native_doors(),
        seed: scene.run.seed(),
        ends_us: now_us() + u64::try_from(long.as_micros()).unwrap(),
        beliefs: Arc::default(),
        renewals: Renewals::default(),
        tally: Arc::default(),
    };
    let crowds: Vec<_> = (0..CROWDS).map(|crowd| gather(&scene.world, crowd, &shared)).collect();
    let seen = watch_nodes_die(&mut scene, &shared);
    crowds.into_iter().for_each(|crowd| {
        crowd.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });

    let nodes_after = nothing_is_left(&mut scene.world, &shared);
    let own_after = Vitals::own();
    let (numbers, count) = (shared.tally.numbers(), shared.renewals.count());
    println!("\n{numbers}{count}");
    println!("{:>9}  deaths of a node", seen.deaths);
    println!("{:>9}  locks held at one time, at most", seen.held_max);
    println!("{:>9}  ms without a grant, at most", numbers.longest_gap.as_millis());
    println!("clients  {own_before}\n   most  {}\n  after  {own_after}", seen.own_max);
    for (number, (before, after)) in (1..).zip(nodes_before.iter().zip(&nodes_after)) {
        println!(" node {number}  {before}\n  after  {after}");
    }
    println!("   most  {}", seen.nodes_max);

    let violations = shared.beliefs.violations();
    assert!(violations.is_empty(), "{}: {:#?}", violations.len(), &violations[..violations.len().min(20)]);
    assert!(seen.deaths >= 3, "each node was to die once: {}", seen.deaths);
    let had = numbers.of("locks had");
    assert!(had >= LOCKS_PER_SECOND_MIN * long.as_secs(), "only {had} locks were had in {long:?}");
    assert!(numbers.longest_gap < GAP_MAX, "nobody got a lock for {:?}", numbers.longest_gap);
    count.expect_no_storm(had, seen.held_max);
    assert!(own_after.files <= own_before.files + 8, "clients: {own_before} before, {own_after} after");
    for (before, after) in nodes_before.iter().zip(&nodes_after) {
        assert!(after.files <= before.files + 64, "a node: {before} before, {after} after");
    }
    assert!(seen.own_max.memory_mib <= MEMORY_MAX_MIB, "clients: {}", seen.own_max);
    assert!(seen.nodes_max.memory_mib <= MEMORY_MAX_MIB, "a node: {}", seen.nodes_max);
    scene.close();
}

/// The check itself: two clusters that know nothing of each other grant one lock twice, and both holders are found.
#[test]
fn two_who_believe_in_one_lock_are_found() {
    let run = Run::begin("two_who_believe_in_one_lock_are_found");
    let mut world = World::prepare(&run, 2);
    for number in 1..=2 {
        world.node(number).start();
        world.answers(number);
        let (status, _) = world.ask(number, "POST", "/cluster/init", Some(json!({}))).unwrap();
        assert_eq!(status, 200);
        world.wait_ready(number);
    }
    let doors = world.native_doors();
    let violations = world.inside(move || async move {
        let beliefs = Beliefs::default();
        let mut held = Vec::new();
        for door in doors {
            let client = Client::connect([door]).await.unwrap();
            let lock = client.lock("soak/r").try_acquire().await.unwrap();
            held.push(beliefs.begin(lock).unwrap());
        }
        beliefs.violations()
    });
    assert!(violations.iter().any(|what| what.contains("both believed in")), "{violations:?}");
    assert!(violations.iter().any(|what| what.contains("comes after token")), "{violations:?}");
}

/// What was seen meanwhile.
#[derive(Debug, Default)]
struct Seen {
    deaths: u64,
    held_max: usize,
    own_max: Vitals,
    nodes_max: Vitals,
}

/// Starts a share of the clients on a thread and a runtime of their own, which must be as empty afterwards as before.
fn gather(world: &World, crowd: u64, shared: &Shared) -> JoinHandle<()> {
    let shared = shared.clone();
    world.begin_inside(move || async move {
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        let numbers = (crowd..CLIENTS).step_by(usize::try_from(CROWDS).unwrap());
        let members: Vec<_> = numbers.map(|number| tokio::spawn(live(shared.clone(), number))).collect();
        for member in members {
            member.await.unwrap();
        }
        // The last handle to a client has gone; its tasks notice it in their own time.
        for _ in 0..150 {
            if tasks() == before {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        shared
            .beliefs
            .report(format!("{} tasks of crowd {crowd} are left, {before} were there before", tasks()));
    })
}

/// Kills one node after another and starts it again, until the time is over.
fn watch_nodes_die(scene: &mut Scene, shared: &Shared) -> Seen {
    let mut random = Random::new(scene.run.seed(), 1_000_000);
    let mut seen = Seen::default();
    let begun_us = now_us();
    let mut say_at = Duration::from_secs(10);
    let mut look = |seen: &mut Seen, world: &mut World| {
        seen.held_max = seen.held_max.max(shared.beliefs.count());
        seen.own_max = seen.own_max.max(Vitals::own());
        for vitals in vitals(world) {
            seen.nodes_max = seen.nodes_max.max(vitals);
        }
        if since(begun_us) >= say_at {
            say_at = since(begun_us) + Duration::from_secs(10);
            say(since(begun_us), seen, shared, world);
        }
    };
    let mut wait = |ms: u64, seen: &mut Seen, world: &mut World| {
        let until_us = (now_us() + ms * 1_000).min(shared.ends_us);
        while now_us() < until_us {
            pause(200);
            look(seen, world);
        }
    };
    for number in (1..=3).cycle() {
        wait(random.between(2_500, 5_000), &mut seen, &mut scene.world);
        if now_us() >= shared.ends_us {
            break;
        }
        scene.world.node(number).must_not_have_ended();
        scene.world.node(number).kill();
        seen.deaths += 1;
        wait(random.between(300, 3_000), &mut seen, &mut scene.world);
        come_back(&mut scene.world, number);
    }
    seen
}

/// Starts a node again, and waits until it serves. How long that takes is measured elsewhere: here it has a thousand
/// clients to share two cores with.
fn come_back(world: &mut World, number: usize) {
    world.node(number).start();
    let is_ready = || world.ask(number, "GET", "/readyz", None).filter(|(status, _)| *status == 200);
    let ready = wait_for(Duration::from_secs(60), is_ready);
    assert!(ready.is_some(), "node {number} isn't ready:\n{}", world.node(number).words());
}

fn say(after: Duration, seen: &Seen, shared: &Shared, world: &mut World) {
    let (numbers, count) = (shared.tally.numbers(), shared.renewals.count());
    println!(
        "{:>5} s: {} locks had, {} held now, {} renewals where {:.0} were due, {} waits given up, {} deaths, {} violations\n\
         clients  {}",
        after.as_secs(),
        numbers.of("locks had"),
        shared.beliefs.count(),
        count.sent,
        count.due,
        numbers.of("waits given up"),
        seen.deaths,
        shared.beliefs.violations().len(),
        Vitals::own(),
    );
    vitals(world).iter().for_each(|node| println!("   node  {node}"));
}

fn vitals(world: &mut World) -> Vec<Vitals> {
    let numbers = 1..=world.count();
    numbers.filter_map(|number| Vitals::of(world.node(number).process_id()?)).collect()
}

/// The clients are gone: no lease and no waiter may outlive their TTL and grace.
fn nothing_is_left(world: &mut World, shared: &Shared) -> Vec<Vitals> {
    let leader = world.leader();
    let listed = || world.ask(leader, "GET", "/locks?limit=10", None);
    let nothing = || {
        let (_, listed) = listed()?;
        listed["locks"].as_array().is_some_and(Vec::is_empty).then_some(())
    };
    if wait_for(Duration::from_secs(30), nothing).is_none() {
        shared.beliefs.report(format!("leases or waiters are left: {:?}", listed()));
    }
    vitals(world)
}

/// Raises the limit on open files to what a thousand clients need, for the nodes too, which inherit it.
fn more_files() {
    let mut limit = getrlimit(Resource::Nofile);
    assert!(
        limit.maximum.is_none_or(|most| most >= FILES),
        "{limit:?}: at least {FILES} open files are needed"
    );
    if limit.current.is_some_and(|current| current < FILES) {
        limit.current = Some(FILES);
        setrlimit(Resource::Nofile, limit).unwrap();
    }
}
