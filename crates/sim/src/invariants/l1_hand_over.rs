//! L1: a dead holder's resource reaches the next waiter in time, once nothing is at fault. While something is, the time
//! without a leader comes on top, so that only the end of it can be judged then (see `lost_wake_up`).
//!
//! Judged twice: by the cluster's clock, which is the leader's running time, and exactly as the contract says; and by the
//! world's, in case that the cluster's clock stands still, as clients see it.

use super::{Case, Found};
use kunci_oracle::{Call, HandOver, Told, hand_overs};

/// The contract's bound, in ms of a leader's time.
const WITHIN_MS: u64 = 250;
/// What a client may see on top of that: the commit, and ways on which something has to be sent again now and then.
const SEEN_LATER_MS: u64 = 650;

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let Some(well) = &case.gathered.well else { return Vec::new() };
    let mut found = Vec::new();
    for hand_over in hand_overs(case.calls()) {
        let Some(next) = case.calls().iter().find(|call| grants(call, hand_over.next)) else { continue };
        let over_us = next.ended_us.saturating_sub(hand_over.delay_ms * 1_000);
        if over_us <= well.start || next.ended_us > well.end {
            continue;
        }
        if !case.committed.grant_follows(hand_over.token, hand_over.next) {
            // Somebody held it in between, whose answer was lost.
            continue;
        }
        let late = late_by_cluster_ms(case, &hand_over).filter(|late| *late > WITHIN_MS);
        if let Some(late) = late {
            found.push(told(
                &hand_over,
                next,
                &format!("{late} ms of cluster time later, within {WITHIN_MS} ms"),
            ));
        }
        if hand_over.delay_ms > WITHIN_MS + SEEN_LATER_MS {
            let (seen, within) = (hand_over.delay_ms, WITHIN_MS + SEEN_LATER_MS);
            found.push(told(&hand_over, next, &format!("{seen} ms later, within {within} ms")));
        }
    }
    found
}

/// From the moment when time ended a lease and its lock-delay, and the next holder was in the queue, to its grant, as the
/// log says. A client knows the end of a lease less exactly than that, so one that came later may look as if it had waited:
/// seed 166 had one that asked 6 ms before the lease was over for sure, and 2 s after it was.
fn late_by_cluster_ms(case: &Case<'_>, hand_over: &HandOver) -> Option<u64> {
    let end_ms = case.watched.end_ms(hand_over.token)? + hand_over.closed_ms;
    let queued_ms = case.committed.queued_ms(hand_over.token, hand_over.next)?;
    let granted = case.committed.at(hand_over.next)??;
    Some(granted.at_ms.saturating_sub(end_ms.max(queued_ms)))
}

fn told(hand_over: &HandOver, next: &Call, when: &str) -> Found {
    let text = format!(
        "the lease of token {} was over, and its resource came to the next {when} expected",
        hand_over.token
    );
    Found::new(text, &[next])
}

fn grants(call: &Call, wanted: u64) -> bool {
    let told = call.answer().and_then(|answer| Told::read(&call.op, answer).ok());
    matches!(told, Some(Told::Granted { token, repeated: false, .. }) if token == wanted)
}
