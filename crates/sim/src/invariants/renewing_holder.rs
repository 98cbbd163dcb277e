//! A holder that renews keeps its lock: through stalls and elections while its renewals get through in time, and for as
//! long as it likes once nothing is at fault. The server never ends a lease before its holder has to stop by itself.

use crate::world::World;
use kunci_client::{Ending, Loss};

/// What a lost lock says of its end.
pub(crate) struct Lost<'a> {
    pub(crate) who: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) token: u64,
    pub(crate) loss: Loss,
    /// Its holder has run, and nothing has been at fault, from its grant on.
    pub(crate) was_well: bool,
}

/// Judges it.
pub(crate) fn check(world: &World, lost: &Lost<'_>) {
    let Lost { who, resource, token, loss, was_well } = lost;
    let too_early = matches!(loss, Loss::Ended(Ending::Expired | Ending::Abandoned | Ending::Unknown));
    if too_early || *was_well {
        world.broken("renewing_holder", || {
            let why = if too_early { "before its own deadline" } else { "though nothing was at fault" };
            format!("{who} lost {resource} with token {token} {why}: {loss}")
        });
    }
}
