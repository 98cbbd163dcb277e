//! A disk runs full: first new locks are refused, and when not a byte more fits the node must stop, and lose nothing.

use super::failing_sync::restart;
use super::last;
use crate::randomness::Seeded;
use crate::world::World;
use std::time::Duration;
use tokio::time::sleep;

/// How long a node may take to stop once it couldn't write.
const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// There is little room, or next to none, for a while.
pub(super) async fn fill(world: World, mut random: Seeded) -> bool {
    let Some(grip) = world.grip(&mut random) else { return false };
    // Below 64 MiB a node takes no new locks; the small numbers are gone within a few entries.
    let free = *random.pick(&[0, 700, 5_000, 60 << 20]).unwrap_or(&0);
    let set = |free: Option<u64>| {
        world.with_machine(&grip.name, |machine| {
            machine.disk.set_room(free);
            machine.is_excused = true;
            (machine.disk.counts().full_writes, machine.lives)
        })
    };
    let Some((before, life)) = set(Some(free)) else { return false };
    world.trace().tell(&grip.name, || format!("its disk has room for {free} bytes more"));
    last(&world, &mut random, 1_000, 5_000).await;
    let Some((after, _)) = set(None) else { return false };
    if after > before {
        sleep(STOPS_WITHIN).await;
        let lives_on =
            world.with_machine(&grip.name, |machine| machine.life.is_some() && machine.lives == life);
        // A snapshot that found no room is tried again later; that alone stops nobody.
        if lives_on == Some(true) {
            world.trace().tell(&grip.name, || "goes on after a write without room".to_owned());
        }
    }
    restart(&world, &grip.name);
    true
}
