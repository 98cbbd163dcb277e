//! The faults: one file for each kind of thing that they befall.
//!
//! Owns: which fault strikes when, as the seed says. Never: a fault that a cluster needn't survive.

mod clocks;
mod connections;
mod cuts;
mod death;
mod failing_sync;
mod flipped_bit;
mod full_disk;
mod membership;
mod replay;
mod slow_sync;
mod snapshots;
mod stand_still;
mod torn_write;
mod ways;

use crate::randomness::Seeded;
use crate::world::World;
use futures::future::BoxFuture;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Faults that last at the same time.
const AT_ONCE_MAX: usize = 7;
/// How long a fault may take to undo itself once the storm is over: what the cluster has to do for it, it does by then.
const UNDONE_WITHIN: Duration = Duration::from_secs(60);

/// A kind of fault.
pub struct Kind {
    /// What it is called in counts and traces.
    pub name: &'static str,
    /// How often it strikes, in comparison with others.
    pub weight: u64,
    /// Strikes, and undoes itself. False if there was nothing to strike.
    strike: fn(World, Seeded) -> BoxFuture<'static, bool>,
}

/// Every kind.
pub const ALL: &[Kind] = &[
    Kind { name: "kill", weight: 4, strike: |world, random| Box::pin(death::kill(world, random)) },
    Kind {
        name: "power_loss",
        weight: 4,
        strike: |world, random| Box::pin(death::power_loss(world, random)),
    },
    Kind { name: "stop", weight: 2, strike: |world, random| Box::pin(death::stop(world, random)) },
    Kind { name: "all_die", weight: 1, strike: |world, random| Box::pin(death::all_die(world, random)) },
    Kind {
        name: "leader_dies",
        weight: 2,
        strike: |world, random| Box::pin(death::leader_dies(world, random)),
    },
    Kind { name: "pause", weight: 4, strike: |world, random| Box::pin(stand_still::pause(world, random)) },
    Kind {
        name: "suspend",
        weight: 2,
        strike: |world, random| Box::pin(stand_still::suspend(world, random)),
    },
    Kind { name: "isolation", weight: 3, strike: |world, random| Box::pin(cuts::isolation(world, random)) },
    Kind { name: "one_way_cut", weight: 3, strike: |world, random| Box::pin(cuts::one_way(world, random)) },
    Kind { name: "pair_cut", weight: 2, strike: |world, random| Box::pin(cuts::pair(world, random)) },
    Kind { name: "split", weight: 2, strike: |world, random| Box::pin(cuts::split(world, random)) },
    Kind { name: "lossy_way", weight: 2, strike: |world, random| Box::pin(ways::lossy(world, random)) },
    Kind { name: "slow_way", weight: 2, strike: |world, random| Box::pin(ways::slow(world, random)) },
    Kind { name: "reset", weight: 4, strike: |world, random| Box::pin(connections::reset(world, random)) },
    Kind {
        name: "late_messages",
        weight: 4,
        strike: |world, random| Box::pin(connections::late(world, random)),
    },
    Kind { name: "duplicate", weight: 4, strike: |world, random| Box::pin(replay::duplicate(world, random)) },
    Kind { name: "drift", weight: 2, strike: |world, random| Box::pin(clocks::drift(world, random)) },
    Kind { name: "wall_step", weight: 2, strike: |world, random| Box::pin(clocks::wall_step(world, random)) },
    Kind {
        name: "transfer",
        weight: 3,
        strike: |world, random| Box::pin(membership::transfer(world, random)),
    },
    Kind {
        name: "grow_and_shrink",
        weight: 2,
        strike: |world, random| Box::pin(membership::grow_and_shrink(world, random)),
    },
    Kind {
        name: "wipe_and_replace",
        weight: 2,
        strike: |world, random| Box::pin(membership::wipe_and_replace(world, random)),
    },
    Kind { name: "snapshot", weight: 3, strike: |world, random| Box::pin(snapshots::make(world, random)) },
    Kind { name: "slow_sync", weight: 2, strike: |world, random| Box::pin(slow_sync::slow(world, random)) },
    Kind {
        name: "hanging_sync",
        weight: 2,
        strike: |world, random| Box::pin(slow_sync::hang(world, random)),
    },
    Kind {
        name: "failing_sync",
        weight: 2,
        strike: |world, random| Box::pin(failing_sync::fail(world, random)),
    },
    Kind { name: "full_disk", weight: 2, strike: |world, random| Box::pin(full_disk::fill(world, random)) },
    Kind { name: "torn_write", weight: 3, strike: |world, random| Box::pin(torn_write::tear(world, random)) },
    Kind {
        name: "flipped_bit",
        weight: 1,
        strike: |world, random| Box::pin(flipped_bit::flip(world, random)),
    },
];

/// Lets faults strike for as long as the plan says, and waits until all have undone themselves.
pub(crate) async fn storm(world: &World) {
    let mut random = world.random("storm");
    let end = Instant::now() + world.plan().storm;
    let mut striking = JoinSet::new();
    let every_ms = u64::try_from(world.plan().fault_every.as_millis()).unwrap_or(u64::MAX);
    while Instant::now() < end {
        sleep(Duration::from_millis(random.between(every_ms / 4, every_ms * 7 / 4))).await;
        while striking.try_join_next().is_some() {}
        if striking.len() < AT_ONCE_MAX {
            let kind = pick(&mut random);
            let (world, random) = (world.clone(), Seeded::new(random.bits()));
            striking.spawn(async move {
                if (kind.strike)(world.clone(), random).await {
                    world.count_fault(kind.name);
                }
            });
        }
    }
    world.end_storm();
    let all = async { while striking.join_next().await.is_some() {} };
    if timeout(UNDONE_WITHIN, all).await.is_err() {
        world.broken("l4_heals", || {
            format!("a change of the members wasn't done {UNDONE_WITHIN:?} after the last fault")
        });
    }
}

fn pick(random: &mut Seeded) -> &'static Kind {
    let all: u64 = ALL.iter().map(|kind| kind.weight).sum();
    let mut at = random.below(all);
    for kind in ALL {
        match at.checked_sub(kind.weight) {
            Some(rest) => at = rest,
            None => return kind,
        }
    }
    &ALL[0]
}

/// Waits for a time between two, in milliseconds, and not longer than the storm lasts.
async fn last(world: &World, random: &mut Seeded, from_ms: u64, to_ms: u64) {
    let time = Duration::from_millis(random.between(from_ms, to_ms));
    // Either ends it.
    drop(timeout(time, world.storm_over()).await);
}
