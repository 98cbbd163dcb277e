//! Limits are replicated: a change names the policy that it replaces, everybody is shown the one in force, and every
//! request is decided by it.
//!
//! Owns: from the answers to what was in force at each revision. A change is an event with a revision of its own, so that
//! an answer's revision says which policy decided it. One whose values nobody was ever shown decides nothing here.

use super::{Case, Found, asked_once};
use kunci_core::event::Change;
use kunci_oracle::{Call, Op, Told};
use serde_json::Value;
use std::collections::BTreeMap;

/// The longest waiter grace that the load asks for, in ms, and that of a policy that nobody has changed.
const WAITER_GRACE_MS: u64 = 10_000;

/// Every policy that somebody was shown, by the revision from which on it was in force.
pub(super) struct Policies<'a> {
    shown: BTreeMap<u64, (Value, &'a Call)>,
    /// When there was another one, as the nodes say.
    changes: Vec<u64>,
}

/// The limits of one policy that the load runs into.
#[derive(Clone, Copy)]
struct Limits {
    ttl_ms: (u64, u64),
    wait_ms: u64,
    delay_ms: u64,
    waiters: u64,
    grace_ms: u64,
}

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    let policies = Policies::of(case, &mut found);
    found.extend(case.calls().iter().filter_map(|call| wrong_policy(case, &policies, call)));
    if !policies.changes.is_empty() {
        found.extend(wrongly_decided(case, &policies));
        found.extend(too_many_wait(case, &policies));
    }
    found
}

impl<'a> Policies<'a> {
    pub(super) fn of(case: &'a Case<'_>, found: &mut Vec<Found>) -> Self {
        let mut shown: BTreeMap<u64, (Value, &Call)> = BTreeMap::new();
        for call in case.calls() {
            let Some(answer) = call.answer() else { continue };
            let Ok(Told::Policy { since, limits }) = Told::read(&call.op, answer) else { continue };
            match shown.get(&since) {
                Some((before, first)) if *before != limits => {
                    let text = format!("the policy since revision {since} is shown as two");
                    found.push(Found::new(text, &[first, call]));
                }
                Some(_) => {}
                None => drop(shown.insert(since, (limits, call))),
            }
        }
        Self { shown, changes: case.committed.policy_changes().collect() }
    }

    /// The revision of the policy that was in force at one.
    fn since(&self, revision: u64) -> u64 {
        let after = self.changes.partition_point(|change| *change <= revision);
        after.checked_sub(1).and_then(|last| self.changes.get(last).copied()).unwrap_or(0)
    }

    /// What was in force from one revision to another; `None` if nobody was shown one of them.
    fn between(&self, from: u64, to: u64) -> Option<Vec<Limits>> {
        let changes = self.changes.iter().copied().filter(|change| *change > from && *change <= to);
        std::iter::once(self.since(from)).chain(changes).map(|since| self.limits(since)).collect()
    }

    /// The longest waiter grace from one revision to another.
    pub(super) fn grace_ms(&self, from: u64, to: u64) -> u64 {
        let known =
            self.between(from, to).and_then(|limits| limits.iter().map(|limits| limits.grace_ms).max());
        known.unwrap_or(WAITER_GRACE_MS)
    }

    fn limits(&self, since: u64) -> Option<Limits> {
        if since == 0 {
            let usual = kunci_types::Policy::default();
            return Some(Limits {
                ttl_ms: (usual.ttl_ms_min, usual.ttl_ms_max),
                wait_ms: usual.wait_ms_max,
                delay_ms: usual.lock_delay_ms_max,
                waiters: usual.waiters_per_resource_max,
                grace_ms: usual.waiter_grace_ms,
            });
        }
        let (limits, _) = self.shown.get(&since)?;
        let of = |name: &str| limits[name].as_u64();
        Some(Limits {
            ttl_ms: (of("ttlMsMin")?, of("ttlMsMax")?),
            wait_ms: of("waitMsMax")?,
            delay_ms: of("lockDelayMsMax")?,
            waiters: of("waitersPerResourceMax")?,
            grace_ms: of("waiterGraceMs")?,
        })
    }
}

impl Limits {
    fn allow(&self, op: &Op) -> bool {
        let Op::Acquire { ttl_ms, wait_ms, delay_ms, .. } = op else { return true };
        (self.ttl_ms.0..=self.ttl_ms.1).contains(ttl_ms)
            && *wait_ms <= self.wait_ms
            && *delay_ms <= self.delay_ms
    }
}

/// Somebody is shown another policy than the one in force, or replaces another one than it named.
fn wrong_policy(case: &Case<'_>, policies: &Policies<'_>, call: &Call) -> Option<Found> {
    let answer = call.answer()?;
    let Told::Policy { since, .. } = Told::read(&call.op, answer).ok()? else { return None };
    let revision = answer.body["revision"].as_u64()?;
    let oldest = policies.changes.first().copied().unwrap_or(revision);
    let is_known = case.committed.is_whole(oldest.min(revision), revision);
    if is_known && policies.since(revision) != since {
        let is = policies.since(revision);
        let text =
            format!("at revision {revision} the policy of {since} is shown, and that of {is} is in force");
        return Some(Found::new(text, &[call]));
    }
    let Op::ChangePolicy { replaces, policy } = &call.op else { return None };
    let before = policies.since(since.saturating_sub(1));
    if is_known && before != *replaces {
        let text = format!("a change of the policy of {replaces} has replaced that of {before}");
        return Some(Found::new(text, &[call]));
    }
    let shown = &answer.body["policy"];
    let lacks = policy.as_object()?.iter().find(|(name, value)| shown[name.as_str()] != **value)?;
    Some(Found::new(format!("a change came to nothing: {lacks:?}"), &[call]))
}

/// A request is decided by a policy that wasn't in force while it was asked for.
fn wrongly_decided(case: &Case<'_>, policies: &Policies<'_>) -> Vec<Found> {
    let mut requests: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for call in case.calls() {
        if let Op::Acquire { owner, request, .. } | Op::Cancel { owner, request, .. } = &call.op {
            *requests.entry((owner, request)).or_default() += 1;
        }
    }
    let mut by_end: Vec<(u64, u64)> = case.calls().iter().filter_map(answered).collect();
    by_end.sort_unstable();
    // What had surely been reached when a call began.
    let mut reached = 0;
    for (_, revision) in &mut by_end {
        reached = (*revision).max(reached);
        *revision = reached;
    }
    let decided = case.calls().iter().filter_map(|call| {
        let Op::Acquire { owner, request, .. } = &call.op else { return None };
        let is_only = requests.get(&(owner.as_str(), request.as_str())) == Some(&1);
        let answer = call.answer().filter(|_| is_only)?;
        let told = Told::read(&call.op, answer).ok().filter(Told::is_decided)?;
        let (_, until) = answered(call)?;
        let before = by_end.partition_point(|(ended_us, _)| *ended_us < call.began_us);
        let from =
            before.checked_sub(1).and_then(|last| by_end.get(last)).map_or(0, |(_, revision)| *revision);
        if !case.committed.is_whole(from.max(1), until) {
            return None;
        }
        let limits = policies.between(from, until)?;
        let refused = matches!(&told, Told::Refused(refused) if refused.code == "out_of_policy");
        let is_timed_out = matches!(&told, Told::Refused(refused) if refused.code == "timed_out");
        if refused && limits.iter().all(|limits| limits.allow(&call.op)) {
            return Some(Found::new("refused as out of policy, and every policy allowed it", &[call]));
        }
        // One that got too old in its node was never decided.
        if !refused && !is_timed_out && !limits.iter().any(|limits| limits.allow(&call.op)) {
            return Some(Found::new("taken, though no policy allowed it", &[call]));
        }
        None
    });
    decided.collect()
}

/// The end of a call, and the revision of its answer.
fn answered(call: &Call) -> Option<(u64, u64)> {
    let answer = call.answer()?;
    let told = Told::read(&call.op, answer).ok()?;
    told.is_decided().then_some((call.ended_us, answer.body["revision"].as_u64()?))
}

/// More wait for a resource than were allowed when the last one came.
fn too_many_wait(case: &Case<'_>, policies: &Policies<'_>) -> Vec<Found> {
    let known = asked_once::owners_of_one(case);
    let mut queues: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    let mut found = Vec::new();
    for (revision, happened) in case.committed.iter().filter(|(_, one)| known.contains(one.owner.as_str())) {
        let queue = queues.entry(&happened.resource).or_default();
        match happened.change {
            Change::Queued => {
                queue.insert(&happened.owner, revision);
                let first = queue.values().min().copied().unwrap_or(revision);
                let most = policies.limits(policies.since(revision)).map(|limits| limits.waiters);
                if most.is_some_and(|most| queue.len() as u64 > most)
                    && case.committed.is_whole(first, revision)
                {
                    let text = format!(
                        "{} of {} is queued at revision {revision} as number {}, of {most:?} at most",
                        happened.owner,
                        happened.resource,
                        queue.len()
                    );
                    found.push(Found::new(text, &[]));
                }
            }
            Change::Granted { .. } | Change::TimedOut | Change::Cancelled | Change::Dropped => {
                queue.remove(happened.owner.as_str());
            }
            _ => {}
        }
    }
    found
}
