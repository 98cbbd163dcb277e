//! S4: nothing is acknowledged before a quorum has it on disk, and what was acknowledged is there for ever.
//!
//! At the moment when the first node applies an entry, which comes before every answer, the entry is among what was synced
//! on the disks of a majority of the voters. And every grant and release that a client was told of is in the committed
//! history that all nodes share.

use super::{Case, Found};
#[cfg(kunci_plants)]
use crate::world::World;
use kunci_core::event::Change;
use kunci_oracle::{Call, Told};

/// An entry is applied for the first time. It counts by the membership before it, or by one that was only written yet: a
/// leader goes by the newest in its own log, as soon as it has proposed it. Nobody sees when it proposes the end of a joint
/// change; but behind a joint membership that is committed, the new voters' majority is enough to keep an entry: nobody
/// leads any more without a majority of theirs.
#[cfg(kunci_plants)]
pub(super) fn check_at_acknowledgement(world: &World, term: u64, index: u64) {
    let (disks, before) = {
        let watched = world.watched();
        let before = watched.memberships.range(..=index).next_back();
        let before = before.map(|(since, voters)| (*since, voters.clone()));
        (watched.disks.clone(), before)
    };
    let (mut on_disk_of, mut memberships) = (Vec::new(), Vec::new());
    if let Some((since, voters)) = before {
        if since < index {
            memberships.extend(voters.last().filter(|_| voters.len() > 1).map(|new| vec![new.clone()]));
        }
        memberships.push(voters);
    }
    for (node_id, (disk, wipes)) in &disks {
        disk.look_at_log(*wipes, |log| {
            if log.has(term, index) {
                on_disk_of.push(*node_id);
            }
            memberships.extend(log.memberships_after(index).cloned());
        });
    }
    let is_majority = |voters: &std::collections::BTreeSet<u64>| {
        voters.iter().filter(|voter| on_disk_of.contains(voter)).count() > voters.len() / 2
    };
    if !memberships.iter().any(|sets| sets.iter().all(is_majority)) {
        world.broken("s4_quorum", || {
            format!(
                "entry {index} of term {term} is applied, and it is on the disks of the nodes {on_disk_of:?} alone, of the voters {memberships:?}"
            )
        });
    }
}

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let mut found = case.breaches_of("S4");
    found.extend(case.calls().iter().filter_map(|call| missing(case, call)));
    found.extend(case.calls().iter().filter_map(|call| too_early(case, call)));
    found
}

/// An answer that came before anybody had applied what it answers.
fn too_early(case: &Case<'_>, call: &Call) -> Option<Found> {
    let answer = call.answer()?;
    let at = Told::read(&call.op, answer).ok().filter(Told::is_decided).and(answer.position)?;
    let applied_us = case.watched.applied_us(at.index)?;
    (call.ended_us < applied_us).then(|| {
        Found::new(
            format!("entry {} was applied only at {:.3} s", at.index, super::seconds(applied_us)),
            &[call],
        )
    })
}

/// What the committed history has instead of what a client was told.
fn missing(case: &Case<'_>, call: &Call) -> Option<Found> {
    let answer = call.answer()?;
    let told = Told::read(&call.op, answer).ok()?;
    let revision = answer.body["revision"].as_u64().unwrap_or(0);
    if told.is_decided() && revision > case.committed.last {
        let last = case.committed.last;
        return Some(Found::new(
            format!("revision {revision} was answered, and the last one is {last}"),
            &[call],
        ));
    }
    let resource = call.op.resource()?;
    match told {
        Told::Granted { token, .. } => {
            let happened = case.committed.at(token)?;
            let is_it = happened.is_some_and(|happened| {
                matches!(happened.change, Change::Granted { .. }) && happened.resource == resource
            });
            (!is_it)
                .then(|| Found::new(format!("token {token} is no committed grant of {resource}"), &[call]))
        }
        Told::Released { already: false } => {
            let happened = case.committed.at(revision)?;
            // A hand-off in the same step has the revision after the release's own.
            let is_near = |revision: u64| match case.committed.at(revision) {
                None => true,
                Some(happened) => happened.is_some_and(|happened| {
                    matches!(happened.change, Change::Released { .. }) && happened.resource == resource
                }),
            };
            let is_it = happened.is_some() && (is_near(revision) || is_near(revision.saturating_sub(1)));
            (!is_it).then(|| Found::new(format!("no committed release of {resource} at {revision}"), &[call]))
        }
        _ => None,
    }
}
