//! No lost wake-up: nobody is told that a wait is over while the resource was free.
//!
//! A waiter whose one call is answered at the end of its wait was attached all the time, so it was to be granted the
//! resource as soon as that was free: by the first entry of the log after that. Where one entry finds both over, the lock-delay
//! and the wait, the wait is over first, as the contract says; seed 2336 had such an entry after a second without any.

use super::{Case, Found, asked_once};
use kunci_core::event::Change;
use std::collections::BTreeMap;

/// The longest lock-delay that the load asks for, and a little.
const CLOSED_MS_MAX: u64 = 600 + 300;

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let told = asked_once::by_revision(case);
    let mut free_since: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    // The times of the newest entry that is known of, and of the one before it.
    let (mut entry_ms, mut entry_before_ms) = (0, 0);
    let mut found = Vec::new();
    for (revision, happened) in case.committed.iter() {
        let resource = happened.resource.as_str();
        if happened.at_ms > entry_ms {
            (entry_before_ms, entry_ms) = (entry_ms, happened.at_ms);
        }
        match happened.change {
            Change::Granted { .. } => drop(free_since.remove(resource)),
            Change::Released { .. }
            | Change::Expired { .. }
            | Change::Forced { .. }
            | Change::Abandoned { .. } => {
                free_since.insert(resource, (revision, happened.at_ms));
            }
            Change::TimedOut => {
                if let Some(call) = told.get(&revision)
                    && call.op.resource() == Some(resource)
                    && let Some((since, since_ms)) = free_since.get(resource)
                    && entry_before_ms > since_ms + CLOSED_MS_MAX
                    && case.committed.is_whole(*since, revision)
                {
                    let text = format!(
                        "{resource}: the wait of {} was over at revision {revision}, though it had been free for {} ms of cluster time",
                        happened.owner,
                        happened.at_ms - since_ms
                    );
                    found.push(Found::new(text, &[call]));
                }
            }
            Change::Queued | Change::Cancelled | Change::Dropped => {}
        }
    }
    found
}
