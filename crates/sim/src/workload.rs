//! The clients of a simulated world, and what they do.
//!
//! Owns: how many there are, their processes, and that everything they were told is judged. Never: a rule; those are in
//! `invariants`. Next: `workload/jobs.rs` is what a client of the HTTP doors does, with every call recorded;
//! `workload/holders.rs` what a program does that uses the product's own client.

mod beliefs;
mod caller;
mod connection;
mod finish;
mod holders;
mod jobs;
mod policy;
mod store;
mod witness;

pub(crate) use beliefs::{Beliefs, Seen};
pub(crate) use store::Write;

use crate::invariants::{self, Gathered};
use crate::network::Leaving;
use crate::world::World;
use finish::Finish;
use holders::Shared;
use jobs::Worker;
use kunci_oracle::History;
use kunci_process::Process;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Clients of the HTTP doors.
const CALLERS: u64 = 5;
/// Programs with the product's own client.
const HOLDERS: u64 = 3;
/// From one look at all beliefs to the next.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long clients take at most to finish what they are at.
const FINISH_WITHIN: Duration = Duration::from_secs(60);

/// Lets clients work until the world has been well for a while, and judges what they were told.
pub(crate) async fn run(world: World) {
    let history = History::default();
    let shared = Shared {
        world: world.clone(),
        beliefs: Beliefs::default(),
        store: store::Store::default(),
        finish: Finish::watch(&world),
    };
    let mut clients = JoinSet::new();
    for number in 1..=CALLERS {
        clients.spawn(call(world.clone(), number, history.clone(), shared.finish.clone()));
    }
    for number in 1..=HOLDERS {
        clients.spawn(holders::live(shared.clone(), number));
    }
    let looking = tokio::spawn(look(shared.clone()));
    tokio::spawn(crate::plants::provoke(world.clone()));
    let all = async {
        while let Some(ended) = clients.join_next().await {
            if ended.is_err() {
                world.broken("simulator", || "a client of the load panicked".to_owned());
            }
        }
    };
    shared.finish.finished().await;
    if timeout(FINISH_WITHIN, all).await.is_err() {
        world.broken("l2_one_answer", || format!("clients didn't come to an end within {FINISH_WITHIN:?}"));
    }
    looking.abort();
    let well = shared.finish.well_us(&world);
    let gathered = Gathered { calls: history.calls(), writes: shared.store.journal(), well };
    invariants::judge(&world, &gathered);
}

/// A client of the HTTP doors, with all its lives.
async fn call(world: World, number: u64, history: History, finish: Finish) {
    let name = format!("c{number}");
    let mut random = world.random(&format!("fate of {name}"));
    for life in 1_u64.. {
        let plug = world.network().plug(&name);
        let process = Process::new(format!("{name}.{life}"));
        let mut worker = Worker::new(&world, number, life, plug, &history);
        let working = finish.clone();
        let running = process.spawn(async move {
            while !working.is_finished() {
                worker.job().await;
            }
        });
        loop {
            let quiet = Duration::from_millis(random.between(5_000, 40_000));
            if timeout(quiet, world.calm().cancelled()).await.is_ok() {
                // What it is at comes to an end, and its last calls are judged like all others.
                if running.await.is_err() {
                    world.broken("simulator", || format!("{name} panicked"));
                }
                return;
            }
            if random.below(3) == 0 {
                world.network().unplug(&name, Leaving::Process);
                process.kill();
                world.trace().tell(&name, || "dies".to_owned());
                break;
            }
            process.pause();
            sleep(Duration::from_millis(random.between(20, 5_000))).await;
            process.resume();
        }
        sleep(Duration::from_millis(random.below(1_000))).await;
    }
}

/// Looks at what holders believe, again and again.
async fn look(shared: Shared) {
    loop {
        sleep(LOOK_EVERY).await;
        check_beliefs(&shared.world, &shared.beliefs);
    }
}

/// Looks at what holders believe now.
fn check_beliefs(world: &World, beliefs: &Beliefs) {
    invariants::beliefs::check(world, &beliefs.ask());
}
