//! Clocks go wrong.

use super::last;
use crate::clock::step_wall_clock;
use crate::randomness::Seeded;
use crate::world::World;

/// The rate error that the product allows for, in millionths.
const STATED_PPM: u64 = 500;

/// A machine's clocks go too fast or too slow, by what the product allows for.
pub(super) async fn drift(world: World, mut random: Seeded) -> bool {
    let Some(grip) = world.grip(&mut random) else { return false };
    let off = i32::try_from(random.below(2 * STATED_PPM + 1)).unwrap_or(0) - 500;
    set(&world, &grip.name, off);
    last(&world, &mut random, 1_000, 8_000).await;
    set(&world, &grip.name, 0);
    true
}

fn set(world: &World, name: &str, rate_ppm: i32) {
    world.trace().tell(name, || format!("its clock is off by {rate_ppm} ppm"));
    world.with_machine(name, |machine| {
        machine.rate_ppm = rate_ppm;
        if let Some(life) = &machine.life {
            life.process.set_rate(rate_ppm);
        }
    });
}

/// Everybody's wall clock jumps by up to a year. It decides nothing.
pub(super) async fn wall_step(world: World, mut random: Seeded) -> bool {
    const YEAR: u64 = 365 * 86_400;
    let most = if random.below(2) == 0 { 10 } else { YEAR };
    let seconds = i64::try_from(random.below(2 * most)).unwrap_or(0) - i64::try_from(most).unwrap_or(0);
    world.tell(|| format!("the wall clock jumps by {seconds} s"));
    step_wall_clock(seconds);
    true
}
