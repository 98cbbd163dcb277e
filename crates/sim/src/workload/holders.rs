//! Programs that use the product's own client: they hold, are stopped for longer than their lease, die, and change their
//! minds, and write to what the locks protect.
//!
//! Owns: what such a program does, and what befalls it. Never: a look at a node.

use super::beliefs::Beliefs;
use super::caller::now_us;
use super::finish::Finish;
use super::store::Store;
use super::witness::Witness;
use crate::invariants::renewing_holder::{self, Lost};
use crate::network::{Leaving, Plug};
use crate::randomness::Seeded;
use crate::world::World;
use kunci_client::{Client, HeldLock, InDoubt, RuntimeClock, State};
use kunci_process::Process;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Contended resources, and as many for long holds.
const RESOURCES: u64 = 2;
/// A lease of this TTL outlives any election, with time for a client to find the new leader.
const SURVIVES: Duration = Duration::from_secs(9);
/// Some of those are held for longer than they last, in steps of up to a half of that.
const STEPS_OF_LONG: (u64, u64) = (2, 7);
/// A program's clock is off by so much at most, in millionths: what the contract allows for.
const RATE_PPM: u64 = 500;

/// What all of them share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) world: World,
    pub(super) beliefs: Beliefs,
    pub(super) store: Store,
    pub(super) finish: Finish,
}

/// Lives one life after the other until the world is well, and then no more faults.
pub(super) async fn live(shared: Shared, number: u64) {
    let name = format!("h{number}");
    let world = &shared.world;
    let mut random = world.random(&format!("fate of {name}"));
    for life in 1_u64.. {
        let plug = world.network().plug(&name);
        let process = Process::new(format!("{name}.{life}"));
        let rate = i32::try_from(random.below(2 * RATE_PPM + 1)).unwrap_or(0) - 500;
        process.set_rate(rate);
        world.trace().tell(&name, || format!("life {life} begins, its clock off by {rate} ppm"));
        let one = Holder::new(shared.clone(), &name, life, (process.clone(), plug));
        let running = process.spawn(one.work());
        befall(&shared, &name, &process, &mut random).await;
        if !process.is_killed() {
            // Nothing befalls it any more: it ends by itself.
            if running.await.is_err() {
                world.broken("simulator", || format!("{name} panicked"));
            }
            return;
        }
        sleep(Duration::from_millis(random.below(2_000))).await;
        if shared.finish.is_finished() {
            return;
        }
    }
}

/// Stops and kills it until the world is calm.
async fn befall(shared: &Shared, name: &str, process: &Process, random: &mut Seeded) {
    let world = &shared.world;
    loop {
        let quiet = Duration::from_millis(random.between(1_000, 12_000));
        let calm = tokio::time::timeout(quiet, world.calm().cancelled()).await;
        if calm.is_ok() {
            return;
        }
        if process.is_killed() {
            world.broken("simulator", || format!("{name} died by itself"));
            return;
        }
        if random.below(5) == 0 {
            world
                .network()
                .unplug(name, if random.below(2) == 0 { Leaving::Process } else { Leaving::Machine });
            process.kill();
            world.trace().tell(name, || "dies".to_owned());
            return;
        }
        let ms = random.between(20, 6_000);
        let is_suspended = random.below(3) == 0 || crate::plants::is("client_clock_stops_in_suspend");
        world.trace().tell(name, || format!("stands still for {ms} ms"));
        if is_suspended {
            process.suspend();
        } else {
            process.pause();
        }
        sleep(Duration::from_millis(ms)).await;
        process.resume();
    }
}

struct Holder {
    shared: Shared,
    name: String,
    process: Process,
    plug: Plug,
    random: Seeded,
}

impl Holder {
    fn new(shared: Shared, name: &str, life: u64, (process, plug): (Process, Plug)) -> Self {
        let random = shared.world.random(&format!("{name}.{life}"));
        Self { shared, name: name.to_owned(), process, plug, random }
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        self.shared.world.trace().tell(&self.name, what);
    }

    async fn pause(&mut self, from_ms: u64, to_ms: u64) {
        let ms = self.random.between(from_ms, to_ms);
        kunci_process::sleep(Duration::from_millis(ms)).await;
    }

    async fn work(mut self) {
        let plug = Arc::new(self.plug.clone());
        let client = loop {
            if self.shared.finish.is_finished() {
                return;
            }
            let clock = crate::plants::client_clock(RuntimeClock::new());
            let builder = Client::builder().owner(&self.name).connector(plug.clone()).clock(clock);
            match builder.connect(self.shared.world.native_addresses()).await {
                Ok(client) => break client,
                Err(_) => self.pause(50, 200).await,
            }
        };
        while !self.shared.finish.is_finished() {
            self.hold(&client).await;
            self.pause(0, 300).await;
        }
        client.close().await;
    }

    async fn hold(&mut self, client: &Client) {
        // A lease that survives an election is never lost while its holder is served.
        let is_long = self.random.below(if self.shared.finish.is_well() { 3 } else { 6 }) == 0;
        let ttl_ms =
            if is_long { self.random.between(9_000, 12_000) } else { self.random.between(1_000, 3_000) };
        let ttl = Duration::from_millis(ttl_ms);
        let kind = if is_long { "long" } else { "held" };
        let resource = format!("{kind}/{}", self.random.below(RESOURCES));
        let delay = if self.random.below(6) == 0 { Duration::from_millis(300) } else { Duration::ZERO };
        let wait = Duration::from_millis(self.random.between(500, 6_000));
        let asked = client.lock(&resource).ttl(ttl).lock_delay(delay);
        self.shared.world.counts().operations += 1;
        let asked = match self.random.below(10) {
            0 => asked.try_acquire().await,
            1 => {
                // It changes its mind: the future is dropped.
                let patience = Duration::from_millis(self.random.between(1, 1_500));
                match kunci_process::timeout(patience, asked.wait(wait).acquire()).await {
                    Ok(asked) => asked,
                    Err(_) => return self.tell(|| format!("drops its acquire of {resource}")),
                }
            }
            _ => asked.wait(wait).acquire().await,
        };
        match asked {
            Ok(lock) => self.use_lock(Arc::new(lock), ttl).await,
            Err(error) => self.tell(|| format!("doesn't get {resource}: {error}")),
        }
    }

    async fn use_lock(&mut self, lock: Arc<HeldLock>, ttl: Duration) {
        let (resource, token) = (lock.resource().to_string(), lock.token().get());
        let was_well = self.shared.finish.is_well() && ttl >= SURVIVES;
        self.tell(|| format!("holds {resource} with token {token}"));
        self.shared.beliefs.add(&self.process, &self.name, &lock);
        super::check_beliefs(&self.shared.world, &self.shared.beliefs);
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let witness = (ttl >= SURVIVES).then(|| Witness::begin(&self.shared.world, &self.plug, &lock));
        let steps = match self.random.below(4) {
            0 | 1 if witness.is_some() => self.random.between(STEPS_OF_LONG.0, STEPS_OF_LONG.1),
            0 => self.random.between(4, 14),
            _ => self.random.between(0, 3),
        };
        for _ in 0..steps {
            if lock.check().is_err() && lock.state() == State::Lost {
                break;
            }
            self.write(&resource, token, ttl_ms);
            self.pause(50, ttl_ms / 2).await;
        }
        if let Err(InDoubt::Lost(loss)) = lock.check() {
            self.tell(|| format!("lost {resource} with token {token}: {loss}"));
            let served_for = witness.as_ref().map(Witness::served_for).unwrap_or_default();
            let lost = Lost { who: &self.name, resource: &resource, token, loss, was_well, served_for };
            renewing_holder::check(&self.shared.world, &lost);
        }
        self.shared.world.counts().operations += 1;
        let Some(lock) = Arc::into_inner(lock) else { return };
        if self.random.below(5) == 0 {
            drop(lock);
            return self.tell(|| format!("dropped {resource}"));
        }
        let released = lock.release().await;
        self.tell(|| format!("released {resource}: {released:?}"));
    }

    /// Writes to what the lock protects. The write is on its way for a while, sometimes for longer than the lease lasts.
    fn write(&mut self, resource: &str, token: u64, ttl_ms: u64) {
        let ms =
            if self.random.below(10) == 0 { self.random.below(ttl_ms * 2) } else { self.random.below(20) };
        let (shared, name, resource) = (self.shared.clone(), self.name.clone(), resource.to_owned());
        // It left the program; what happens to that changes nothing about it.
        let arrival = async move {
            sleep(Duration::from_millis(ms)).await;
            let now = now_us(&shared.world);
            let is_in = shared.store.write(&resource, token, &name, now);
            shared.world.counts().operations += 1;
            let what = if is_in { "lets in" } else { "refuses" };
            shared.world.trace().tell("store", || format!("{what} token {token} of {name} for {resource}"));
        };
        self.shared.finish.deliver(arrival);
    }
}
