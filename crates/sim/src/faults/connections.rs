//! Something happens to one connection.

use crate::randomness::Seeded;
use crate::world::World;
use std::time::Duration;

/// It breaks in the middle of a message, in both directions.
pub(super) async fn reset(world: World, mut random: Seeded) -> bool {
    let Some(host) = random.pick(&world.network().hosts()).cloned() else { return false };
    let broken = world.network().break_one(&host, &mut random);
    if let Some(words) = &broken {
        world.tell(|| format!("a connection breaks: {words}"));
    }
    broken.is_some()
}

/// What is on its way in it comes late: after what newer connections carry, if its ends give it up.
pub(super) async fn late(world: World, mut random: Seeded) -> bool {
    let Some(host) = random.pick(&world.network().hosts()).cloned() else { return false };
    let by = Duration::from_millis(random.between(300, 8_000));
    let slow = world.network().slow_one(&host, by, &mut random);
    if let Some(words) = &slow {
        world.tell(|| format!("a connection gets late by {by:?}: {words}"));
    }
    slow.is_some()
}
