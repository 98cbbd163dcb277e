//! L3: a waiter whose client is gone leaves the queue within the waiter grace.
//!
//! A client is gone with the end of its last call for a request; that its connection has ended, its node learns later if
//! nothing gets through. Judged in cluster time, which stands still while nobody leads. Each takeover counts all waiters
//! as attached once more for a while.

use super::policy::Policies;
use super::{Case, Found, asked_once};
use kunci_core::event::Change;
use kunci_oracle::{Call, Op};
use std::collections::BTreeMap;

/// How long a new leader counts every waiter as attached.
const PRESENCE_MS: u64 = 2_000;
/// When the node that a client asked, or the leader that this node asked, knows at the latest that the other end is gone.
const CLOSED_MS: u64 = 1_000;
/// The same where nothing says so, since a way was cut.
const SILENT_MS: u64 = 20_000;
/// When everything that was cut is said again after the mending.
const MENDED_MS: u64 = 3_000;
/// What a commit takes, and the next tick of the clock.
const SLACK_MS: u64 = 1_500;

/// A stay in a queue.
struct Stay<'a> {
    owner: &'a str,
    resource: &'a str,
    /// Revision, and cluster time.
    joined: (u64, u64),
    left: Option<(u64, u64)>,
}

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let mut last_calls: BTreeMap<&str, &Call> = BTreeMap::new();
    for call in case.calls() {
        if let Op::Acquire { owner, .. } | Op::Cancel { owner, .. } = &call.op {
            let last = last_calls.entry(owner).or_insert(call);
            if call.ended_us > last.ended_us {
                *last = call;
            }
        }
    }
    let policies = Policies::of(case, &mut Vec::new());
    stays(case)
        .iter()
        .filter_map(|stay| too_long(case, &policies, stay, last_calls.get(stay.owner)?))
        .collect()
}

fn stays<'a>(case: &'a Case<'_>) -> Vec<Stay<'a>> {
    let known = asked_once::owners_of_one(case);
    let mut stays: BTreeMap<&str, Stay<'_>> = BTreeMap::new();
    for (revision, happened) in case.committed.iter() {
        let (owner, resource) = (happened.owner.as_str(), happened.resource.as_str());
        let at = (revision, happened.at_ms);
        match happened.change {
            Change::Queued if known.contains(owner) => {
                stays.insert(owner, Stay { owner, resource, joined: at, left: None });
            }
            Change::Granted { .. } | Change::TimedOut | Change::Cancelled | Change::Dropped => {
                if let Some(stay) = stays.get_mut(owner) {
                    stay.left.get_or_insert(at);
                }
            }
            _ => {}
        }
    }
    stays.into_values().collect()
}

fn too_long(case: &Case<'_>, policies: &Policies<'_>, stay: &Stay<'_>, last: &Call) -> Option<Found> {
    let (until, left_ms) = stay.left.unwrap_or((case.committed.last, case.watched.last_ms()));
    let gone_ms = case.watched.cluster_ms_at_most(last.ended_us)?;
    let counted_ms = case.watched.last_take_over_ms(left_ms).unwrap_or(0) + PRESENCE_MS;
    let since_ms = gone_ms.max(stay.joined.1);
    let mut known_ms = since_ms + SILENT_MS;
    if let Some(well) = &case.gathered.well
        && let Some(well_ms) = case.watched.cluster_ms_at_most(well.start)
    {
        known_ms = known_ms.min((since_ms + CLOSED_MS).max(well_ms + MENDED_MS));
    }
    let grace_ms = policies.grace_ms(stay.joined.0, until);
    let most_ms = known_ms.max(counted_ms) + grace_ms + SLACK_MS;
    (left_ms > most_ms && case.committed.is_whole(stay.joined.0, until)).then(|| {
        let how = if stay.left.is_some() { "left it" } else { "was still there" };
        let text = format!(
            "{} joined the queue of {} at revision {}, was gone at cluster time {gone_ms} ms at most, and {how} at {left_ms} ms, until {most_ms} ms expected",
            stay.owner, stay.resource, stay.joined.0,
        );
        Found::new(text, &[last])
    })
}
