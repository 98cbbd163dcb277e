//! S6: attached waiters are served in the order in which their requests were committed, and nobody barges. In what clients
//! saw of the queues, and in what was committed: nobody is granted a resource past a waiter that was attached all the time.

use super::{Case, Found, asked_once};
use kunci_core::event::Change;
use kunci_oracle::Call;
use std::collections::BTreeMap;

/// A waiter that is in a queue.
struct Waiter<'a> {
    owner: &'a str,
    joined: u64,
    /// Who was served although this one had come earlier: the owner, and the token.
    passed_by: Option<(&'a str, u64)>,
}

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let mut found = case.breaches_of("S6");
    let attached = asked_once::by_revision(case);
    let known = asked_once::owners_of_one(case);
    let mut queues: BTreeMap<&str, Vec<Waiter<'_>>> = BTreeMap::new();
    // Whose event it is, isn't known of an owner with several requests: it passes nobody, and nobody passes it.
    for (revision, happened) in case.committed.iter().filter(|(_, one)| known.contains(one.owner.as_str())) {
        let queue = queues.entry(&happened.resource).or_default();
        let owner = happened.owner.as_str();
        match happened.change {
            Change::Queued => queue.push(Waiter { owner, joined: revision, passed_by: None }),
            Change::Granted { .. } | Change::TimedOut | Change::Cancelled | Change::Dropped => {
                let place = queue.iter().position(|waiter| waiter.owner == owner);
                if matches!(happened.change, Change::Granted { .. }) {
                    // Who wasn't in the queue passes everybody.
                    let before = place.unwrap_or(queue.len());
                    for earlier in queue.iter_mut().take(before) {
                        earlier.passed_by.get_or_insert((owner, revision));
                    }
                }
                let Some(waiter) = place.map(|place| queue.remove(place)) else { continue };
                let of_resource = |call: &&&Call| call.op.resource() == Some(&happened.resource);
                if let Some(call) = attached.get(&revision).filter(of_resource) {
                    found.extend(passed_over(case, &waiter, (&happened.resource, revision), call));
                }
            }
            Change::Released { .. }
            | Change::Expired { .. }
            | Change::Forced { .. }
            | Change::Abandoned { .. } => {}
        }
    }
    found
}

fn passed_over(
    case: &Case<'_>,
    waiter: &Waiter<'_>,
    (resource, left): (&str, u64),
    call: &Call,
) -> Option<Found> {
    let (other, token) = waiter.passed_by?;
    case.committed.is_whole(waiter.joined, left).then(|| {
        let text = format!(
            "{resource}: {other} was served with token {token}, past {}, which had been attached since revision {}",
            waiter.owner, waiter.joined
        );
        Found::new(text, &[call])
    })
}
