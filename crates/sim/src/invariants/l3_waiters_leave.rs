//! L3: a waiter whose client is gone leaves the queue within the waiter grace.
//!
//! Every client dies, hangs up or goes on in a world; whoever joined a queue has left it by the end, by whatever way.

use super::{Case, Found};
use kunci_core::event::Change;
use std::collections::BTreeMap;

/// The longest wait that the load asks for, the waiter grace, the presence time of a new leader, and a little: nobody
/// can be in a queue for longer.
const WITHIN_MS: u64 = 6_000 + 10_000 + 2_000 + 2_000;

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let mut queues: BTreeMap<(&str, &str), Vec<(u64, u64)>> = BTreeMap::new();
    let mut found = Vec::new();
    for (revision, happened) in case.committed.iter() {
        let queue = queues.entry((&happened.resource, &happened.owner)).or_default();
        match happened.change {
            Change::Queued => queue.push((revision, happened.at_ms)),
            Change::Granted { .. } | Change::TimedOut | Change::Cancelled | Change::Dropped
                if !queue.is_empty() =>
            {
                let (joined, at_ms) = queue.remove(0);
                if happened.at_ms - at_ms > WITHIN_MS && case.committed.is_whole(joined, revision) {
                    let text = format!(
                        "{} joined the queue of {} at revision {joined}, and left it {} ms of cluster time later, within {WITHIN_MS} ms expected",
                        happened.owner,
                        happened.resource,
                        happened.at_ms - at_ms
                    );
                    found.push(Found::new(text, &[]));
                }
            }
            _ => {}
        }
    }
    found
}
