//! Nothing gets through between some hosts for a while, and nobody is told.

use super::last;
use crate::randomness::Seeded;
use crate::world::World;

/// Ways from one host to another.
type Ways = Vec<(String, String)>;

/// A node is alone: without the other nodes, and sometimes without clients too.
pub(super) async fn isolation(world: World, mut random: Seeded) -> bool {
    let names = world.names();
    let Some(one) = random.pick(&names).cloned() else { return false };
    let others = if random.below(2) == 0 { names } else { world.network().hosts() };
    let ways =
        others.into_iter().filter(|other| *other != one).flat_map(|other| both(&one, &other)).collect();
    cut_for_a_while(&world, ways, &mut random).await
}

/// A node can't be heard, or can't hear.
pub(super) async fn one_way(world: World, mut random: Seeded) -> bool {
    let names = world.names();
    let Some(one) = random.pick(&names).cloned() else { return false };
    let is_mute = random.below(2) == 0;
    let is_between_two = random.below(2) == 0;
    let mut others: Vec<String> = names.into_iter().filter(|other| *other != one).collect();
    if is_between_two {
        others = random.pick(&others).cloned().into_iter().collect();
    }
    let way = |other: String| if is_mute { (one.clone(), other) } else { (other, one.clone()) };
    cut_for_a_while(&world, others.into_iter().map(way).collect(), &mut random).await
}

/// Two nodes don't reach each other, though everybody else reaches both.
pub(super) async fn pair(world: World, mut random: Seeded) -> bool {
    let mut names = world.names();
    if names.len() < 2 {
        return false;
    }
    let one = names.swap_remove(random.index(names.len()));
    let other = names.swap_remove(random.index(names.len()));
    cut_for_a_while(&world, both(&one, &other).into(), &mut random).await
}

/// The nodes fall into two groups, and clients with them.
pub(super) async fn split(world: World, mut random: Seeded) -> bool {
    let hosts = world.network().hosts();
    let (left, right): (Vec<String>, Vec<String>) = hosts.into_iter().partition(|_| random.below(2) == 0);
    let ways = left.iter().flat_map(|one| right.iter().flat_map(|other| both(one, other))).collect();
    cut_for_a_while(&world, ways, &mut random).await
}

fn both(one: &str, other: &str) -> [(String, String); 2] {
    [(one.to_owned(), other.to_owned()), (other.to_owned(), one.to_owned())]
}

async fn cut_for_a_while(world: &World, ways: Ways, random: &mut Seeded) -> bool {
    if ways.is_empty() {
        return false;
    }
    world.tell(|| format!("cut: {}", words(&ways)));
    ways.iter().for_each(|(from, to)| world.network().cut(from, to));
    let to_ms = if random.below(4) == 0 { 12_000 } else { 4_000 };
    last(world, random, 100, to_ms).await;
    ways.iter().for_each(|(from, to)| world.network().mend(from, to));
    world.tell(|| format!("mended: {}", words(&ways)));
    true
}

fn words(ways: &Ways) -> String {
    let ways: Vec<String> = ways.iter().map(|(from, to)| format!("{from} to {to}")).collect();
    ways.join(", ")
}
