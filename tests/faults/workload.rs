//! Many clients at work, with everything that clients do: holds with renewals, waits, tries, cancels, lost answers,
//! retries, late proofs and reads.
//!
//! Owns: how many there are and on which resources. What one of them does is in `jobs`.

mod jobs;
mod prober;

pub(crate) use jobs::Tally;
pub(crate) use prober::Prober;

use crate::client::Caller;
use crate::clock::now_us;
use crate::world::World;
use jobs::Worker;
use kunci_oracle::Random;
use kunci_oracle::{History, Op};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::time::sleep;

/// Resources change after this time, so that the history of each stays short enough to be searched.
const EPOCH_US: u64 = 1_500_000;

/// Its name in histories.
const ONLOOKER: u64 = 901;

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
        Self { seed, clients: 16, resources: 6, lost_answers: 10 }
    }

    /// Enough to see a loss, and too little to be what takes the time.
    pub(crate) fn light(seed: u64) -> Self {
        Self { clients: 4, resources: 2, ..Self::usual(seed) }
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

/// Which resources are used now.
#[derive(Clone, Copy)]
struct Names {
    began_us: u64,
    count: u64,
}

impl Names {
    fn draw(self, random: &mut Random) -> String {
        let epoch = now_us().saturating_sub(self.began_us) / EPOCH_US;
        format!("work/{epoch}-{}", random.between(1, self.count))
    }
}

async fn work(plan: Plan, history: History, doors: Vec<SocketAddr>, stop: Arc<AtomicBool>) -> Tally {
    let names = Names { began_us: now_us(), count: plan.resources };
    let onlooker =
        tokio::spawn(look_on(Caller::new(ONLOOKER, &doors, &history), names, plan.seed, Arc::clone(&stop)));
    let clients: Vec<_> = (1..=plan.clients)
        .map(|name| {
            let mut worker = Worker::new(name, &plan, &doors, &history);
            let (mut random, stop) = (Random::new(plan.seed, 1_000 + name), Arc::clone(&stop));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    worker.job(&names.draw(&mut random)).await;
                    sleep(Duration::from_millis(random.between(0, 15))).await;
                }
                worker.tally()
            })
        })
        .collect();
    let mut all = Tally::default();
    for client in clients {
        all.add(client.await.unwrap());
    }
    onlooker.await.unwrap();
    all
}

/// Looks at queues all the time: only whoever looks can tell whether they are kept to.
async fn look_on(mut caller: Caller, names: Names, seed: u64, stop: Arc<AtomicBool>) {
    let mut random = Random::new(seed, ONLOOKER);
    while !stop.load(Ordering::Relaxed) {
        caller.once(&Op::Queue { resource: names.draw(&mut random) }).await;
        sleep(Duration::from_millis(20)).await;
    }
}
