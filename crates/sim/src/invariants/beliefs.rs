//! At most one client believes that it holds a resource; and who has lost it, never believes again.
//!
//! The contract's section 4: a client stops first, then the server hands over. It holds while every clock keeps to the
//! stated rate error, as all clocks of a world do.

use crate::workload::Seen;
use crate::world::World;

/// Compares what all holders say at one moment.
pub(crate) fn check(world: &World, seen: &[Seen]) {
    for (place, one) in seen.iter().enumerate().filter(|(_, one)| one.believes) {
        if one.had_lost {
            world.broken("one_believes", || {
                format!("{} had lost {} with token {}, and believes again", one.who, one.resource, one.token)
            });
        }
        for other in
            seen.iter().skip(place + 1).filter(|other| other.believes && other.resource == one.resource)
        {
            world.broken("one_believes", || {
                format!(
                    "{} believes that it holds {} with token {}, and so does {} with token {}",
                    one.who, one.resource, one.token, other.who, other.token
                )
            });
        }
    }
}
