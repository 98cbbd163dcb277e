//! Processes stand still, and go on as if nothing had happened.

use super::last;
use crate::randomness::Seeded;
use crate::world::World;

/// A process isn't scheduled for a while: long enough to lose leadership, or only nearly.
pub(super) async fn pause(world: World, mut random: Seeded) -> bool {
    let Some(grip) = world.grip(&mut random) else { return false };
    let Some((_, life)) = world.lives().into_iter().find(|(name, _)| *name == grip.name) else {
        return false;
    };
    world.trace().tell(&grip.name, || "stands still".to_owned());
    life.process.pause();
    let to_ms = if random.below(3) == 0 { 6_000 } else { 800 };
    last(&world, &mut random, 20, to_ms).await;
    life.process.resume();
    world.trace().tell(&grip.name, || "goes on".to_owned());
    true
}

/// A machine sleeps: its clocks differ by that afterwards.
pub(super) async fn suspend(world: World, mut random: Seeded) -> bool {
    let Some(grip) = world.grip(&mut random) else { return false };
    let Some((_, life)) = world.lives().into_iter().find(|(name, _)| *name == grip.name) else {
        return false;
    };
    world.trace().tell(&grip.name, || "is suspended".to_owned());
    life.process.suspend();
    last(&world, &mut random, 500, 6_000).await;
    life.process.resume();
    world.trace().tell(&grip.name, || "wakes up".to_owned());
    true
}
