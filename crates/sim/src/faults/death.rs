//! Nodes die, and come back with what their disks kept.

use super::last;
use crate::disk::Loss;
use crate::randomness::Seeded;
use crate::world::{Death, Grip, World};
use kunci_server::node::Founding;

/// A process is killed, and started again.
pub(super) async fn kill(world: World, mut random: Seeded) -> bool {
    let Some(grip) = world.grip(&mut random) else { return false };
    die(&world, &grip, Death::Process, &mut random).await;
    true
}

/// A machine loses power, and comes back.
pub(super) async fn power_loss(world: World, mut random: Seeded) -> bool {
    let Some(grip) = world.grip(&mut random) else { return false };
    let death = Death::Machine(loss(&mut random));
    die(&world, &grip, death, &mut random).await;
    true
}

/// The leader dies, in either way.
pub(super) async fn leader_dies(world: World, mut random: Seeded) -> bool {
    let Some((name, ..)) = world.leader() else { return false };
    let Some(grip) = world.grip_named(&name) else { return false };
    let death = if random.below(2) == 0 { Death::Process } else { Death::Machine(loss(&mut random)) };
    die(&world, &grip, death, &mut random).await;
    true
}

/// A node is asked to stop, does so in good order, and is started again.
pub(super) async fn stop(world: World, mut random: Seeded) -> bool {
    let Some(grip) = world.grip(&mut random) else { return false };
    world.stop(&grip.name).await;
    last(&world, &mut random, 0, 2_000).await;
    world.start(&grip.name, Founding::WhenAsked);
    true
}

/// Every node that no other fault has in hand dies at the same time, and they come back one by one.
pub(super) async fn all_die(world: World, mut random: Seeded) -> bool {
    let mut grips: Vec<Grip> = std::iter::from_fn(|| world.grip(&mut random)).collect();
    let loss = loss(&mut random);
    let death = if random.below(2) == 0 { Death::Process } else { Death::Machine(loss) };
    grips.iter().for_each(|grip| world.kill(&grip.name, death));
    let is_any = !grips.is_empty();
    while !grips.is_empty() {
        last(&world, &mut random, 0, 1_500).await;
        let grip = grips.swap_remove(random.index(grips.len()));
        world.start(&grip.name, Founding::WhenAsked);
    }
    is_any
}

async fn die(world: &World, grip: &Grip, death: Death, random: &mut Seeded) {
    world.kill(&grip.name, death);
    last(world, random, 0, 3_000).await;
    world.start(&grip.name, Founding::WhenAsked);
}

fn loss(random: &mut Seeded) -> Loss {
    *random.pick(&[Loss::All, Loss::Nothing, Loss::Some, Loss::Some]).unwrap_or(&Loss::All)
}
