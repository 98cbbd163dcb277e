//! A holder that renews keeps its lock, through stalls and elections, for as long as it likes. The server never ends a
//! lease before its holder has to stop by itself; and whoever is served, renews in time.
//!
//! That somebody is served is known in the storm, too: a program that holds a lock for long asks all nodes for it all the
//! time, by another way. Who is answered so for longer than any election takes, and doesn't renew meanwhile, should have.

use crate::world::World;
use kunci_client::{Ending, Loss};
use std::time::Duration;

/// Whoever is served for so long without a gap has to have renewed: an election, and the tries of a client at some nodes
/// that don't answer.
pub(crate) const SERVED_FOR: Duration = Duration::from_secs(6);

/// What a lost lock says of its end.
pub(crate) struct Lost<'a> {
    pub(crate) who: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) token: u64,
    pub(crate) loss: Loss,
    /// Its holder has run, and nothing has been at fault, from its grant on.
    pub(crate) was_well: bool,
    /// Until then it had been served for so long without a gap.
    pub(crate) served_for: Duration,
}

/// Judges it.
pub(crate) fn check(world: &World, lost: &Lost<'_>) {
    let Lost { who, resource, token, loss, was_well, served_for } = lost;
    let why = if matches!(loss, Loss::Ended(Ending::Expired | Ending::Abandoned | Ending::Unknown)) {
        "before its own deadline".to_owned()
    } else if *loss == Loss::HoldLimit {
        // A policy of this world allowed no longer hold.
        return;
    } else if *was_well {
        "though nothing was at fault".to_owned()
    } else if *served_for >= SERVED_FOR {
        format!("though the cluster had served it for {served_for:?}")
    } else {
        return;
    };
    world.broken("renewing_holder", || format!("{who} lost {resource} with token {token} {why}: {loss}"));
}
