//! L4: with a quorum up and reachable, a new leader serves within 1 s of the old one's death. So it is with the product's
//! own timing; where heartbeats and elections take longer, so may this. An election in which nobody wins is rare and can't
//! be excluded: one more may follow, and that is what is allowed here.
//!
//! Judged at the end of a world, when nothing else is at fault: its leader is killed, and all others are asked.

use crate::world::World;
use std::time::Duration;

/// The heartbeat that the contract speaks of.
const HEARTBEAT: Duration = Duration::from_millis(50);
/// What it promises with that, and one more election.
const WITHIN: Duration = Duration::from_millis(1_000 + 600);

/// How long a new leader may take in this world.
pub(crate) fn within(world: &World) -> Duration {
    let longer = world.plan().heartbeat.as_secs_f64() / HEARTBEAT.as_secs_f64();
    WITHIN.mul_f64(longer.max(1.0))
}

/// Judges how long nobody was served.
pub(crate) fn check(world: &World, leader: &str, took: Option<Duration>) {
    let within = within(world);
    if took.is_none_or(|took| took > within) {
        world.broken("l4_new_leader", || {
            let took = took.map_or_else(
                || "nobody served for long".to_owned(),
                |took| format!("another one served after {took:?}"),
            );
            format!("{leader} led and died, and {took}, within {within:?} expected")
        });
    }
}
