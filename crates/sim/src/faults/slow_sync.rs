//! A disk takes its time: each sync lasts longer than usual, or none ends for a while.

use super::last;
use crate::randomness::Seeded;
use crate::world::World;
use std::time::Duration;

/// Each sync takes long; some take so long that the disk counts as stuck.
pub(super) async fn slow(world: World, mut random: Seeded) -> bool {
    let Some(grip) = world.grip(&mut random) else { return false };
    let most_ms = *random.pick(&[20, 100, 400, 1_500]).unwrap_or(&20);
    let between = (Duration::from_millis(most_ms / 4), Duration::from_millis(most_ms));
    world.trace().tell(&grip.name, || format!("its syncs take {between:?}"));
    world.with_machine(&grip.name, |machine| machine.disk.set_sync_time(Some(between)));
    last(&world, &mut random, 300, 4_000).await;
    world.with_machine(&grip.name, |machine| machine.disk.set_sync_time(None));
    true
}

/// No sync ends.
pub(super) async fn hang(world: World, mut random: Seeded) -> bool {
    let Some(grip) = world.grip(&mut random) else { return false };
    world.trace().tell(&grip.name, || "its syncs hang".to_owned());
    world.with_machine(&grip.name, |machine| machine.disk.set_hanging(true));
    last(&world, &mut random, 200, 4_000).await;
    world.with_machine(&grip.name, |machine| machine.disk.set_hanging(false));
    true
}
