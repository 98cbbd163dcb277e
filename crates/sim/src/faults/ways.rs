//! Ways between hosts get bad for a while.

use super::last;
use crate::network::Quality;
use crate::randomness::Seeded;
use crate::world::World;
use std::time::Duration;

/// Much of what goes over a node's ways has to be sent again.
pub(super) async fn lossy(world: World, mut random: Seeded) -> bool {
    let loss_ppm = u32::try_from(random.between(20_000, 300_000)).unwrap_or(20_000);
    let quality = Quality { loss_ppm, ..world.network().usual() };
    worsen(&world, quality, &mut random).await
}

/// Everything takes long on a node's ways.
pub(super) async fn slow(world: World, mut random: Seeded) -> bool {
    let delay = Duration::from_millis(random.between(10, 150));
    let jitter = Duration::from_millis(random.between(5, 300));
    let quality = Quality { delay, jitter, ..world.network().usual() };
    worsen(&world, quality, &mut random).await
}

async fn worsen(world: &World, quality: Quality, random: &mut Seeded) -> bool {
    let names = world.names();
    let Some(one) = random.pick(&names).cloned() else { return false };
    let others: Vec<String> = world.network().hosts().into_iter().filter(|other| *other != one).collect();
    let set = |quality| {
        for other in &others {
            world.network().set_quality(&one, other, quality);
            world.network().set_quality(other, &one, quality);
        }
    };
    world.trace().tell(&one, || format!("is badly reached: {quality:?}"));
    set(quality);
    last(world, random, 300, 5_000).await;
    set(world.network().usual());
    world.trace().tell(&one, || "is reached as usual".to_owned());
    true
}
