//! A machine loses power in the middle of a write: the last record is cut, or its end is zeros.

use super::last;
use crate::disk::{Loss, Part};
use crate::randomness::Seeded;
use crate::world::{Death, World};
use kunci_server::node::Founding;
use std::time::Duration;
use tokio::time::timeout;

/// How long to wait for a write.
const WRITES_WITHIN: Duration = Duration::from_secs(5);
/// So that there is a middle of it.
const SYNC_TIME: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(20));

/// Waits until something is written and not synced, and crashes the machine there.
pub(super) async fn tear(world: World, mut random: Seeded) -> bool {
    let Some(grip) = world.grip(&mut random) else { return false };
    let Some(disk) = world.with_machine(&grip.name, |machine| machine.disk.clone()) else { return false };
    let part = *random.pick(&[Part::Log, Part::Log, Part::Log, Part::Snapshots]).unwrap_or(&Part::Log);
    disk.set_sync_time(Some(SYNC_TIME));
    let written = timeout(WRITES_WITHIN, disk.written(part)).await;
    disk.set_sync_time(None);
    // Whoever died meanwhile by itself is dead enough.
    if written.is_err() || world.with_machine(&grip.name, |machine| machine.life.is_some()) != Some(true) {
        return false;
    }
    let before = disk.counts().torn_files;
    world.kill(&grip.name, Death::Machine(Loss::Torn));
    last(&world, &mut random, 0, 3_000).await;
    world.start(&grip.name, Founding::WhenAsked);
    disk.counts().torn_files > before
}
