//! A bit of what a disk keeps flips: the node must find it, refuse to use it, and be rebuilt by the others.

use crate::disk::Part;
use crate::randomness::Seeded;
use crate::world::{Death, World};
use kunci_server::node::Founding;
use std::time::Duration;
use tokio::time::sleep;

/// How long a node may take to see the damage and end.
const SEES_WITHIN: Duration = Duration::from_secs(3);

/// Flips a bit of a node that is down.
pub(super) async fn flip(world: World, mut random: Seeded) -> bool {
    let Some(_changing) = world.try_changing() else { return false };
    let Some(grip) = world.grip(&mut random) else { return false };
    let alive = world.with_machine(&grip.name, |machine| Some((machine.disk.clone(), machine.life.clone()?)));
    let Some(Some((disk, life))) = alive else { return false };
    let Some(id) = life.replica().map(|replica| replica.node_id()) else { return false };
    world.kill(&grip.name, Death::Process);
    let part = *random.pick(&[Part::Log, Part::Log, Part::Snapshots, Part::Identity]).unwrap_or(&Part::Log);
    let Some(bit) = disk.flip_bit(part) else {
        world.start(&grip.name, Founding::WhenAsked);
        return false;
    };
    world.trace().tell(&grip.name, || format!("{bit} is flipped"));
    world.with_machine(&grip.name, |machine| machine.is_excused = true);
    world.start(&grip.name, Founding::WhenAsked);
    sleep(SEES_WITHIN).await;
    let lives = world.with_machine(&grip.name, |machine| machine.life.is_some()) == Some(true);
    if lives {
        // A snapshot that the log still covers is set aside, and an older one isn't looked at.
        if part != Part::Snapshots {
            world.broken("damage_is_found", || format!("{} lives with {bit} flipped", grip.name));
        }
        world.with_machine(&grip.name, |machine| machine.is_excused = false);
        return true;
    }
    // What it had is gone; a new machine takes its place.
    let new = world.add_machine();
    world.trace().tell(&grip.name, || format!("is damaged; {new} takes its place"));
    world.start(&new, Founding::WhenAsked);
    world.admit(&new, Some(id)).await;
    world.remove_machine(&grip.name);
    true
}
