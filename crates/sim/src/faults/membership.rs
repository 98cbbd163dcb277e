//! Who belongs to the cluster changes, and who leads it.

use super::last;
use crate::randomness::Seeded;
use crate::world::{Death, World};
use kunci_server::node::Founding;

/// Members that a cluster grows to.
const MEMBERS_MAX: usize = 6;
/// Members below which none is taken away.
const MEMBERS_MIN: usize = 3;

/// The leader gives leadership to another member.
pub(super) async fn transfer(world: World, mut random: Seeded) -> bool {
    let Some((name, ..)) = world.leader() else { return false };
    let others: Vec<u64> = world.members().into_iter().flatten().map(|member| member.id).collect();
    let to = random.pick(&others).copied().filter(|_| random.below(2) == 0);
    world.trace().tell(&name, || format!("is asked to give leadership to {to:?}"));
    world.ask_leader(move |replica| async move { replica.transfer_lead(to).await }).await.is_some()
}

/// A new node is taken in, and then one of all is removed.
pub(super) async fn grow_and_shrink(world: World, mut random: Seeded) -> bool {
    let Some(_changing) = world.try_changing() else { return false };
    if world.names().len() < MEMBERS_MAX {
        let new = world.add_machine();
        let Some(_grip) = world.grip_named(&new) else { return false };
        world.tell(|| format!("{new} is to be taken in"));
        world.start(&new, Founding::WhenAsked);
        world.admit(&new, None).await;
    }
    last(&world, &mut random, 0, 3_000).await;
    if world.names().len() > MEMBERS_MIN
        && let Some(grip) = world.grip(&mut random)
        && let Some(id) = id(&world, &grip.name)
    {
        world.tell(|| format!("{}, node {id}, is to be removed", grip.name));
        world.expel(id).await;
        // It may go on for a while without knowing.
        last(&world, &mut random, 0, 2_000).await;
        world.kill(&grip.name, Death::Process);
        world.remove_machine(&grip.name);
    }
    true
}

/// A node loses all its data, and comes back as a new one, in the place of the old one.
pub(super) async fn wipe_and_replace(world: World, mut random: Seeded) -> bool {
    let Some(_changing) = world.try_changing() else { return false };
    let Some(grip) = world.grip(&mut random) else { return false };
    let Some(id) = id(&world, &grip.name) else { return false };
    world.kill(&grip.name, Death::Process);
    world.with_machine(&grip.name, |machine| machine.disk.wipe());
    world.trace().tell(&grip.name, || format!("node {id} has lost its data"));
    last(&world, &mut random, 0, 2_000).await;
    world.start(&grip.name, Founding::WhenAsked);
    world.admit(&grip.name, Some(id)).await;
    true
}

fn id(world: &World, name: &str) -> Option<u64> {
    let (_, life) = world.lives().into_iter().find(|(alive, _)| alive == name)?;
    Some(life.replica()?.node_id())
}
