//! Bugs planted on purpose, so that the checks can't go blind.
//!
//! Owns: the catalogue, and running one until it is found. Never: in the product: those that need another behaviour of its
//! code get in through `planted.rs` of `core` and `replica`, which only `--cfg kunci_plants` compiles, as `cargo xtask sim`
//! does; the others are wrapped around seams that the simulator has anyway.

#[cfg(kunci_plants)]
mod answers;
mod clocks;
#[cfg(kunci_plants)]
mod log;
#[cfg(kunci_plants)]
mod replica;
#[cfg(kunci_plants)]
mod state;

use crate::disk::Loss;
use crate::plan::Plan;
use crate::report::Broken;
use crate::trace::Lines;
use crate::world::{self, Death, World};
use kunci_client::{Clock, RuntimeClock};
use kunci_server::node::Founding;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// A bug, and what must find it.
pub struct Plant {
    /// What it is called.
    pub name: &'static str,
    /// What is wrong with it.
    pub what: &'static str,
    /// The properties that it breaks; one of them has to be named.
    pub breaks: &'static [&'static str],
    /// Makes the worlds such that it has its chance.
    aim: fn(&mut Plan),
    /// Plants it on the thread of a world.
    begin: fn(),
}

/// How many worlds a plant gets: far less than 60 seconds of a processor.
const WORLDS_MAX: u64 = 40;

thread_local! {
    static PLANTED: Cell<&'static str> = const { Cell::new("") };
}

/// Whether this bug is planted in the world of this thread.
pub(crate) fn is(name: &str) -> bool {
    PLANTED.get() == name
}

/// Plants a bug in the world of this thread.
pub(crate) fn begin(name: &str) {
    // Those of the table are planted in the whole program, and one at a time.
    #[cfg(kunci_plants)]
    kunci_core::planted::plant(kunci_core::planted::Bug::None);
    if let Some(plant) = named(name) {
        PLANTED.set(plant.name);
        (plant.begin)();
    }
}

/// The clock that programs count their leases by.
pub(crate) fn client_clock(clock: RuntimeClock) -> Arc<dyn Clock> {
    match PLANTED.get() {
        "client_clock_too_slow" => Arc::new(clocks::Slow::new(clock)),
        "client_clock_stops_in_suspend" => Arc::new(clocks::Stopping::new()),
        _ => Arc::new(clock),
    }
}

/// Whether a disk does nothing at its sync of this number.
pub(crate) fn skips_sync(number: u64) -> bool {
    is("disk_acknowledges_before_durable") && !number.is_multiple_of(4)
}

/// What a planted bug needs to show, if the seed's own faults don't bring it about soon enough.
pub(crate) async fn provoke(world: World) {
    let times = match PLANTED.get() {
        "disk_acknowledges_before_durable" => 1,
        // Whoever has forgotten its votes begins to count terms anew.
        "vote_not_durable" => 4,
        _ => return,
    };
    for _ in 0..times {
        sleep(Duration::from_secs(5)).await;
        for name in world.names() {
            world.kill(&name, Death::Machine(Loss::All));
        }
        sleep(Duration::from_millis(500)).await;
        for name in world.names() {
            world.start(&name, Founding::WhenAsked);
        }
    }
}

/// How far the clocks of nodes are off by a plant, in millionths.
pub(crate) fn node_rate_ppm() -> i32 {
    if is("cluster_clock_too_fast") { 200_000 } else { 0 }
}

/// The plant of this name.
pub fn named(name: &str) -> Option<&'static Plant> {
    all().find(|plant| plant.name == name)
}

/// Every plant.
pub fn all() -> impl Iterator<Item = &'static Plant> {
    #[cfg(kunci_plants)]
    let of_the_product = [answers::ALL, log::ALL, replica::ALL, state::ALL].into_iter().flatten();
    #[cfg(not(kunci_plants))]
    let of_the_product = std::iter::empty();
    SEAMS.iter().chain(of_the_product)
}

/// How a plant was found.
pub struct Caught {
    /// In which world.
    pub seed: u64,
    /// What was broken.
    pub broken: Broken,
}

impl Plant {
    /// The world of a seed with this bug in it: short, and small.
    pub fn plan(&self, seed: u64) -> Plan {
        let mut plan = Plan::drawn(seed);
        plan.plant = self.name;
        plan.storm = Duration::from_secs(25);
        plan.nodes = 3;
        (self.aim)(&mut plan);
        plan
    }

    /// Runs worlds until one finds it. What else it breaks doesn't count.
    pub fn run(&self, lines: Lines) -> Option<Caught> {
        (1..=WORLDS_MAX).find_map(|seed| {
            let report = world::run(&self.plan(seed), lines);
            let found = match report {
                Ok(report) => report.broken,
                Err(why) => vec![Broken { property: "no_panic", what: why }],
            };
            let broken = found.into_iter().find(|broken| self.breaks.contains(&broken.property))?;
            Some(Caught { seed, broken })
        })
    }
}

const fn as_drawn(_: &mut Plan) {}
const fn nothing() {}

/// Those that are wrapped around seams.
static SEAMS: &[Plant] = &[
    Plant {
        name: "client_clock_too_slow",
        what: "a program counts its leases by a clock that runs at half the rate",
        breaks: &["one_believes", "renewing_holder"],
        aim: |plan| plan.storm = Duration::from_secs(60),
        begin: nothing,
    },
    Plant {
        name: "client_clock_stops_in_suspend",
        what: "a program counts its leases by a clock that stands still while its machine is suspended",
        breaks: &["one_believes", "renewing_holder"],
        aim: |plan| plan.storm = Duration::from_secs(60),
        begin: nothing,
    },
    Plant {
        name: "store_lets_old_tokens_in",
        what: "what a lock protects doesn't compare tokens",
        breaks: &["s9_fence"],
        aim: as_drawn,
        begin: nothing,
    },
    Plant {
        name: "store_refuses_equal_tokens",
        what: "what a lock protects takes a holder's second write for an old one",
        breaks: &["s9_fence"],
        aim: as_drawn,
        begin: nothing,
    },
    Plant {
        name: "cluster_clock_too_fast",
        what: "the nodes' clocks run ahead by far more than the stated rate error",
        breaks: &["s7_lease_time", "one_believes", "renewing_holder"],
        aim: as_drawn,
        begin: nothing,
    },
    Plant {
        name: "disk_acknowledges_before_durable",
        what: "most syncs of the log say that they are done and do nothing",
        breaks: &["s4_quorum", "s1_one_history", "s1_one_state", "s1_one_holder", "s2_tokens"],
        aim: |plan| plan.fault_every = Duration::from_millis(500),
        begin: nothing,
    },
];
