//! Every answer, explained: given what was asked before it, the contract must allow it.
//!
//! Owns: reasons. That leases don't overlap, tokens grow and the like are S1 to S8's.

use super::Breach;
use super::facts::{Fact, Facts, request_of};
use crate::history::{Call, Op, Refused, Told};
use std::collections::BTreeMap;

/// A try-once that sat in a node for so long without being proposed is timed out there.
const TRY_TOO_LATE_US: u64 = 2_000_000;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Breach> {
    let mut by_request: BTreeMap<(&str, &str), Vec<&Call>> = BTreeMap::new();
    for call in facts.calls() {
        if let Some(key) = request_of(&call.op) {
            by_request.entry(key).or_default().push(call);
        }
    }
    let none = Vec::new();
    let explained = facts.iter().filter_map(|fact| {
        let key = request_of(&fact.call.op);
        let of_request = key.and_then(|key| by_request.get(&key)).unwrap_or(&none);
        let text = unexplained(facts, fact, of_request)?;
        Some(Breach::new("replay", format!("{} at {}: {text}", fact.resource, fact.at), &[fact.call]))
    });
    explained.collect()
}

/// What no contract allows about an answer.
fn unexplained(facts: &Facts<'_>, fact: &Fact<'_>, of_request: &[&Call]) -> Option<String> {
    match &fact.told {
        Told::Granted { token, remaining_ms, .. } => {
            let ttl_ms = facts.lease(*token)?.ttl_ms;
            let nonsense = *remaining_ms == 0 || (ttl_ms > 0 && *remaining_ms > ttl_ms);
            nonsense.then(|| format!("{remaining_ms} ms of a lease of {ttl_ms} ms"))
        }
        Told::Renewed { remaining_ms } => {
            let ttl_ms = facts.lease_meant(&fact.call.op)?.ttl_ms;
            let nonsense = *remaining_ms == 0 || *remaining_ms > ttl_ms;
            nonsense.then(|| format!("renewed to {remaining_ms} ms of {ttl_ms} ms"))
        }
        Told::Released { already: true } => {
            let lease = facts.lease_meant(&fact.call.op)?;
            let other =
                lease.releases.iter().any(|call| call.number != fact.call.number && is_before(call, fact));
            (!other).then(|| format!("token {} was released already, and by nobody", lease.token))
        }
        Told::Queued { .. } if wait_ms(&fact.call.op) == Some(0) => Some("a try-once is queued".to_owned()),
        Told::Refused(refused) => refusal(facts, fact, refused, of_request),
        _ => None,
    }
}

fn refusal(facts: &Facts<'_>, fact: &Fact<'_>, refused: &Refused, of_request: &[&Call]) -> Option<String> {
    match refused.code.as_str() {
        // A retry takes the wait of the first call, which may have been lost; here all calls of a request are alike.
        "held" if wait_ms(&fact.call.op) != Some(0) => Some("held, though it would wait".to_owned()),
        "held" if refused.held.is_none() => Some("held, and by nobody".to_owned()),
        "timed_out" => timed_out(fact, of_request),
        "cancelled" => {
            let cancel =
                of_request.iter().any(|call| matches!(call.op, Op::Cancel { .. }) && is_before(call, fact));
            // A waiter whose call broke is dropped after the grace.
            let earlier =
                of_request.iter().any(|call| call.number != fact.call.number && is_before(call, fact));
            (!cancel && !earlier).then(|| "cancelled by nobody".to_owned())
        }
        "superseded" => {
            let other =
                of_request.iter().any(|call| call.number != fact.call.number && is_before(call, fact));
            (!other).then(|| "superseded by nothing".to_owned())
        }
        "lease_ended" => {
            let meant = facts.lease_meant(&fact.call.op);
            let lease = meant.or_else(|| refused.token.and_then(|token| facts.lease(token)))?;
            let released = lease.releases.iter().any(|call| is_before(call, fact));
            match refused.reason.as_deref() {
                Some("released") if !released => Some(format!("token {} released by nobody", lease.token)),
                Some("released" | "expired") => None,
                // Its holder was told of it: it was handed out.
                reason => Some(format!("token {} ended as {reason:?}", lease.token)),
            }
        }
        "lock_delay" => {
            let closes = |call: &&Call| match &call.op {
                Op::Acquire { resource, delay_ms, .. } => *resource == fact.resource && *delay_ms > 0,
                _ => false,
            };
            let closed = facts.calls().iter().filter(closes).any(|call| is_before(call, fact));
            (!closed).then(|| "closed by a lock-delay that nobody asked for".to_owned())
        }
        "not_holder" | "held" => None,
        // Which policy was in force when, only a simulator can know.
        "out_of_policy" | "over_limit" if facts.calls().iter().any(|call| changes_policy(call, fact)) => None,
        other => Some(format!("{other} isn't a refusal that this workload asks for")),
    }
}

/// No wait ends before its time.
fn timed_out(fact: &Fact<'_>, of_request: &[&Call]) -> Option<String> {
    let first_us = of_request.iter().map(|call| call.began_us).min()?;
    let waited_us = fact.call.ended_us.saturating_sub(first_us);
    let least_us = match wait_ms(&fact.call.op)? {
        0 => TRY_TOO_LATE_US,
        wait_ms => wait_ms * 1_000 - wait_ms / 2,
    };
    (waited_us < least_us)
        .then(|| format!("timed out after {} of {} ms", waited_us / 1_000, least_us / 1_000))
}

fn changes_policy(call: &Call, fact: &Fact<'_>) -> bool {
    matches!(call.op, Op::ChangePolicy { .. }) && is_before(call, fact)
}

fn wait_ms(op: &Op) -> Option<u64> {
    if let Op::Acquire { wait_ms, .. } = op { Some(*wait_ms) } else { None }
}

fn is_before(call: &Call, fact: &Fact<'_>) -> bool {
    call.may_have_applied() && call.began_us <= fact.call.ended_us
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    fn found(script: &Script) -> usize {
        check(&Facts::read(&script.calls())).len()
    }

    #[test]
    fn an_end_that_nobody_asked_for_is_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).renew_refused("r", 1, ("lease_ended", "released"), (11, 0));
        script.at(40, 50).renew_refused("r", 1, ("lease_ended", "forced"), (12, 0));
        script.at(60, 70).released_already("r", 1, 2, (13, 0));

        assert_eq!(found(&script), 3);
    }

    #[test]
    fn a_wait_that_ends_too_early_is_found() {
        let mut script = Script::new();
        script.at(0, 450).acquire_refused("r", ("a", 1), "timed_out", (10, 0));

        assert_eq!(found(&script), 1);
    }

    #[test]
    fn a_cancel_and_a_queue_that_nobody_asked_for_are_found() {
        let mut script = Script::new();
        script.at(0, 450).acquire_refused("r", ("a", 1), "cancelled", (10, 0));
        script.at(0, 450).acquire_refused("r", ("b", 2), "superseded", (11, 0));
        script.at(0, 450).acquire_refused("r", ("c", 3), "held", (12, 0));
        script.at(0, 450).acquire_refused("r", ("d", 4), "lock_delay", (13, 0));

        assert_eq!(found(&script), 4);
    }

    #[test]
    fn a_limit_that_nobody_can_have_changed_is_found() {
        let mut script = Script::new();
        script.at(0, 50).acquire_refused("r", ("a", 1), "out_of_policy", (10, 0));
        script.at(60, 70).change_policy_unknown();
        script.at(80, 90).acquire_refused("r", ("b", 2), "over_limit", (11, 0));

        assert_eq!(found(&script), 1);
    }

    #[test]
    fn what_was_asked_for_passes() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).release_unknown("r", 1);
        script.at(40, 50).released_already("r", 1, 2, (11, 0));
        script.at(0, 600).acquire_refused("r", ("b", 3), "timed_out", (12, 0));

        assert_eq!(found(&script), 0);
    }
}
