//! One simulated world, from its seed to its last check.
//!
//! Owns: the machines, who lives and who is dead, and the order of a world: a cluster is formed, clients work, faults
//! strike, everything is mended, and then all has to be well. Never: a fault's own business (see `faults`), or what clients
//! do (see `workload`).

mod lives;
mod members;
mod observe;

use crate::faults;
use crate::invariants::watching::Watched;
use crate::log;
use crate::network::Network;
use crate::node::Machine;
use crate::plan::Plan;
use crate::plants;
use crate::randomness::{Seeded, on_seeded_thread};
use crate::report::{Broken, Counts, Report};
use crate::runtime;
use crate::trace::{Lines, Trace};
use crate::workload;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

pub use lives::{Death, Grip};
pub use observe::Observed;

/// How long a whole world may take: some fault never undoes itself then.
const ENDS_WITHIN: Duration = Duration::from_secs(15 * 60);
/// How long the load may take to its end once everything is mended.
const WELL_WITHIN: Duration = Duration::from_secs(150);
/// How long the first members may take to become a cluster.
const FORMED_WITHIN: Duration = Duration::from_secs(60);

/// One world. A clone is another handle to the same.
#[derive(Clone)]
pub struct World {
    inner: Arc<Inner>,
}

struct Inner {
    plan: Plan,
    trace: Trace,
    network: Network,
    machines: Mutex<BTreeMap<String, Machine>>,
    counts: Mutex<Counts>,
    broken: Mutex<Vec<Broken>>,
    observed: Mutex<Observed>,
    watched: Mutex<Watched>,
    /// Cancelled when no fault begins any more.
    storm_over: CancellationToken,
    /// Cancelled when no fault strikes any more.
    calm: CancellationToken,
    /// Held while the members change, or a member's data is gone: one at a time.
    changing: tokio::sync::Mutex<()>,
}

/// Runs the world of a seed on a thread of its own.
///
/// # Errors
/// When the simulator itself panics.
pub fn run(plan: &Plan, lines: Lines) -> Result<Report, String> {
    on_seeded_thread(plan.seed, || match runtime::of(plan.seed) {
        Ok(runtime) => {
            let report = runtime.block_on(World::live(plan.clone(), lines));
            drop(runtime);
            report
        }
        Err(error) => Err(format!("make a runtime: {error}")),
    })?
}

impl World {
    async fn live(plan: Plan, lines: Lines) -> Result<Report, String> {
        plants::begin(plan.plant);
        let trace = Trace::new(lines);
        let _logging = log::into(&trace, lines);
        let network = Network::new(plan.seed, plan.quality, trace.clone());
        let world = Self {
            inner: Arc::new(Inner {
                plan,
                trace,
                network,
                machines: Mutex::default(),
                counts: Mutex::default(),
                broken: Mutex::default(),
                observed: Mutex::default(),
                watched: Mutex::default(),
                storm_over: CancellationToken::new(),
                calm: CancellationToken::new(),
                changing: tokio::sync::Mutex::default(),
            }),
        };
        #[cfg(kunci_plants)]
        let _looking = crate::invariants::watching::Looking::at(&world);
        tokio::spawn(world.network().clone().run());
        if timeout(ENDS_WITHIN, world.run()).await.is_err() {
            world.broken("simulator", || format!("the world didn't come to its end within {ENDS_WITHIN:?}"));
        }
        Ok(world.report())
    }

    async fn run(&self) {
        let plan = self.plan();
        self.tell(|| format!("a world of {} members: {plan:?}", plan.nodes));
        if timeout(FORMED_WITHIN, self.form()).await.is_err() {
            self.broken("l4_serves", || format!("no cluster within {FORMED_WITHIN:?}"));
            return;
        }
        tokio::spawn(self.clone().observe());
        let working = tokio::spawn(workload::run(self.clone()));
        faults::storm(self).await;
        self.inner.calm.cancel();
        self.heal().await;
        self.tell(|| "calm: everything is mended".to_owned());
        // The load looks at `is_calm`, and ends by itself once all has been well for a while.
        match timeout(WELL_WITHIN, working).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => self.broken("simulator", || "the load panicked".to_owned()),
            Err(_) => self.broken("l4_heals", || {
                format!("the load hasn't come to its end {WELL_WITHIN:?} after everything was mended")
            }),
        }
        self.check_at_the_end().await;
    }

    fn report(&self) -> Report {
        let mut counts = self.counts().clone();
        counts.seeds = 1;
        counts.seeds_of_five = u64::from(self.plan().nodes == 5);
        counts.time = self.began().elapsed();
        let mut broken = std::mem::take(&mut *lock(&self.inner.broken));
        broken.extend(log::panics().into_iter().map(|what| Broken { property: "no_panic", what }));
        Report {
            seed: self.plan().seed,
            hash: self.inner.trace.hash(),
            counts,
            broken,
            trace: self.inner.trace.text(),
        }
    }

    /// What its seed stands for.
    pub fn plan(&self) -> &Plan {
        &self.inner.plan
    }

    /// Its network.
    pub fn network(&self) -> &Network {
        &self.inner.network
    }

    /// What happened in it.
    pub fn trace(&self) -> &Trace {
        &self.inner.trace
    }

    /// When it began.
    pub fn began(&self) -> Instant {
        self.inner.trace.began()
    }

    /// Random numbers for one purpose, which follow from the seed.
    pub fn random(&self, purpose: &str) -> Seeded {
        Seeded::of(self.plan().seed, purpose)
    }

    /// Cancelled when no fault strikes any more.
    pub fn calm(&self) -> &CancellationToken {
        &self.inner.calm
    }

    /// No fault begins any more, and those that last end now.
    pub(crate) fn end_storm(&self) {
        self.inner.storm_over.cancel();
    }

    /// Returns when no fault begins any more.
    pub(crate) async fn storm_over(&self) {
        self.inner.storm_over.cancelled().await;
    }

    /// Whether faults are over.
    pub fn is_calm(&self) -> bool {
        self.inner.calm.is_cancelled()
    }

    /// Something that must always hold didn't. The world goes on: what it does next may say why.
    pub fn broken(&self, property: &'static str, what: impl FnOnce() -> String) {
        let what = what();
        self.inner.trace.tell("BROKEN", || format!("{property}: {what}"));
        lock(&self.inner.broken).push(Broken { property, what });
    }

    /// What happened how often.
    pub fn counts(&self) -> MutexGuard<'_, Counts> {
        lock(&self.inner.counts)
    }

    /// A fault struck.
    pub fn count_fault(&self, kind: &'static str) {
        *self.counts().faults.entry(kind).or_default() += 1;
    }

    /// The world itself tells something.
    pub fn tell(&self, what: impl FnOnce() -> String) {
        self.inner.trace.tell("world", what);
    }

    fn machines(&self) -> MutexGuard<'_, BTreeMap<String, Machine>> {
        lock(&self.inner.machines)
    }

    /// What the nodes showed while they applied their log.
    pub(crate) fn watched(&self) -> MutexGuard<'_, Watched> {
        lock(&self.inner.watched)
    }

    fn observed(&self) -> MutexGuard<'_, Observed> {
        lock(&self.inner.observed)
    }

    /// Held while the members change, or a member's data is gone: one at a time, so that a quorum keeps every answer.
    pub async fn changing(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.inner.changing.lock().await
    }

    /// As [`World::changing`], if nobody holds it.
    pub fn try_changing(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        self.inner.changing.try_lock().ok()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
