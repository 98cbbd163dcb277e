//! A sync fails: the node must stop at its first one, and start again from what the disk has.

use super::last;
use crate::randomness::Seeded;
use crate::world::World;
use kunci_server::node::Founding;
use std::time::Duration;
use tokio::time::sleep;

/// How long a node may take to stop after a failed sync.
const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// Syncs fail with an I/O error for a while.
pub(super) async fn fail(world: World, mut random: Seeded) -> bool {
    let Some(grip) = world.grip(&mut random) else { return false };
    let set = |fails: bool| {
        world.with_machine(&grip.name, |machine| {
            machine.disk.set_failing(fails);
            machine.is_excused = true;
            (machine.disk.counts().failed_syncs, machine.lives)
        })
    };
    let Some((before, life)) = set(true) else { return false };
    world.trace().tell(&grip.name, || "its syncs fail".to_owned());
    last(&world, &mut random, 50, 2_000).await;
    let Some((after, _)) = set(false) else { return false };
    let has_failed = after > before;
    if has_failed {
        sleep(STOPS_WITHIN).await;
        let lives_on =
            world.with_machine(&grip.name, |machine| machine.life.is_some() && machine.lives == life);
        if lives_on == Some(true) {
            world.broken("stops_at_a_failed_sync", || {
                format!("{} goes on {STOPS_WITHIN:?} after a sync failed", grip.name)
            });
        }
    }
    restart(&world, &grip.name);
    has_failed
}

/// Starts the node again if it stopped, now that its disk is well.
pub(super) fn restart(world: &World, name: &str) {
    world.with_machine(name, |machine| machine.is_excused = false);
    world.start(name, Founding::WhenAsked);
}
