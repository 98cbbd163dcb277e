//! How long a dead holder's resource takes to reach the next waiter: L1, measured and reported.

use super::facts::{Fact, Facts};
use super::lifetime::over_by_us;
use crate::history::{Call, Op, Told};

/// A lease that ended by time alone, and the waiter that came next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HandOver {
    /// The lease that ended.
    pub token: u64,
    /// The lease that came next.
    pub next: u64,
    /// How long its lock-delay kept the resource closed.
    pub closed_ms: u64,
    /// From the end of both, at the latest that anybody was told, to the waiter's answer.
    pub delay_ms: u64,
}

/// Every one in a history.
#[must_use]
pub fn hand_overs(calls: &[Call]) -> Vec<HandOver> {
    of_facts(&Facts::read(calls))
}

/// The same of a history that was read already.
pub(super) fn of_facts(facts: &Facts<'_>) -> Vec<HandOver> {
    let mut found = Vec::new();
    for (_, of_one) in facts.by_resource() {
        let grants: Vec<&Fact<'_>> = of_one
            .into_iter()
            .filter(|fact| matches!(fact.told, Told::Granted { repeated: false, .. }))
            .collect();
        found.extend(grants.windows(2).filter_map(|pair| hand_over(facts, pair[0], pair[1])));
    }
    found
}

fn hand_over(facts: &Facts<'_>, before: &Fact<'_>, after: &Fact<'_>) -> Option<HandOver> {
    let (Told::Granted { token, .. }, Told::Granted { token: next, .. }) = (&before.told, &after.told) else {
        return None;
    };
    let lease = facts.lease(*token)?;
    let until_us = over_by_us(facts, lease, after.at)? + lease.delay_ms * 1_000;
    let waited =
        matches!(after.call.op, Op::Acquire { wait_ms, .. } if wait_ms > 0) && after.call.began_us < until_us;
    if lease.releases.iter().any(|release| release.began_us < until_us) || !waited {
        return None;
    }
    let delay_ms = after.call.ended_us.saturating_sub(until_us) / 1_000;
    Some(HandOver { token: *token, next: *next, closed_ms: lease.delay_ms, delay_ms })
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    #[test]
    fn the_delay_counts_from_the_end_of_the_lease() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 1_120).grant_after_wait("r", "b", 2, (11, 0));

        let found = hand_overs(&script.calls());

        assert_eq!(found, [HandOver { token: 1, next: 2, closed_ms: 0, delay_ms: 110 }]);
    }
}
