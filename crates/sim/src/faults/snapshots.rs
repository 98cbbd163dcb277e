//! Snapshots are made at awkward moments.

use super::last;
use crate::randomness::Seeded;
use crate::world::{Death, World};
use kunci_server::node::Founding;

/// A node makes a snapshot now, and sometimes dies over it.
pub(super) async fn make(world: World, mut random: Seeded) -> bool {
    let Some(grip) = world.grip(&mut random) else { return false };
    let Some((_, life)) = world.lives().into_iter().find(|(name, _)| *name == grip.name) else {
        return false;
    };
    let Some(replica) = life.replica() else { return false };
    world.trace().tell(&grip.name, || "is to make a snapshot".to_owned());
    life.process.spawn(async move { replica.trigger_snapshot().await });
    if random.below(3) == 0 {
        last(&world, &mut random, 0, 40).await;
        world.kill(&grip.name, Death::Process);
        last(&world, &mut random, 0, 2_000).await;
        world.start(&grip.name, Founding::WhenAsked);
    }
    true
}
