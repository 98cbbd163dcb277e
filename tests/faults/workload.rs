//! Many clients at work, with everything that clients do: holds with renewals, waits, tries, cancels, lost answers,
//! retries, late proofs and reads.
//!
//! Owns: how many there are and on which resources. What one of them does is in `jobs`.

mod jobs;
mod prober;

pub(crate) use jobs::Tally;
pub(crate) use prober::Prober;

use crate::clock::now_us;
use crate::history::History;
use crate::random::Random;
use crate::world::World;
use jobs::Worker;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Resources change after this time, so that the history of each stays short enough to be searched.
const EPOCH_US: u64 = 1_500_000;

/// How much there is to do.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) clients: u64,
    /// Resources at a time; fewer means more waiting.
    pub(crate) resources: u64,
    /// Of a hundred jobs so many have an answer lost on purpose.
    pub(crate) lost_answers: u64,
}

impl Plan {
    /// What most tests run under.
    pub(crate) fn usual(seed: u64) -> Self {
        Self { seed, clients: 16, resources: 8, lost_answers: 10 }
    }

    /// Enough to see a loss, and too little to be what takes the time.
    pub(crate) fn light(seed: u64) -> Self {
        Self { clients: 4, resources: 3, ..Self::usual(seed) }
    }
}

/// Clients at work.
pub(crate) struct Workload {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Tally>>,
}

impl Workload {
    /// Lets them begin.
    pub(crate) fn start(world: &World, plan: &Plan, history: &History) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (plan, history, doors) = (plan.clone(), history.clone(), world.doors());
        let stopping = Arc::clone(&stop);
        let thread = world.begin_inside(move || work(plan, history, doors, stopping));
        Self { stop, thread: Some(thread) }
    }

    /// Lets everybody finish what they are at, and tells what they noticed.
    pub(crate) fn finish(mut self) -> Tally {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().unwrap();
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Workload {
    /// After a panic of the test: the clients end before the world goes.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

async fn work(plan: Plan, history: History, doors: Vec<SocketAddr>, stop: Arc<AtomicBool>) -> Tally {
    let began_us = now_us();
    let clients: Vec<_> = (1..=plan.clients)
        .map(|name| {
            let mut worker = Worker::new(name, &plan, &doors, &history);
            let (mut random, stop) = (Random::new(plan.seed, 1_000 + name), Arc::clone(&stop));
            let resources = plan.resources;
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let epoch = now_us().saturating_sub(began_us) / EPOCH_US;
                    let resource = format!("work/{epoch}-{}", random.between(1, resources));
                    worker.job(&resource).await;
                    tokio::time::sleep(Duration::from_millis(random.between(0, 15))).await;
                }
                worker.tally()
            })
        })
        .collect();
    let mut all = Tally::default();
    for client in clients {
        all.add(client.await.unwrap());
    }
    all
}
