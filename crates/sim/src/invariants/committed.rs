//! What was committed, as the nodes themselves showed it while they applied it.
//!
//! Owns: that record in the order of revisions. Never: fills a gap. A node that was killed right after it applied
//! something, while the others took a snapshot, leaves one.

use crate::world::World;
use kunci_core::event::{Change, Event, EventKind};
use std::collections::BTreeMap;

/// One event about one resource.
pub(super) struct Happened {
    pub(super) resource: String,
    pub(super) owner: String,
    pub(super) change: Change,
    /// Cluster time in ms.
    pub(super) at_ms: u64,
}

/// All of them.
pub(super) struct Committed {
    by_revision: BTreeMap<u64, Option<Happened>>,
    policy_changes: Vec<u64>,
    /// The largest revision that any node has at the end.
    pub(super) last: u64,
}

impl Committed {
    pub(super) fn of(world: &World) -> Self {
        let (by_revision, policy_changes) = world.committed(|events| {
            let changes = events.iter().filter(|(_, event)| event.kind == EventKind::PolicyChanged);
            let changes = changes.map(|(revision, _)| *revision).collect();
            (events.iter().map(|(revision, event)| (*revision, happened(event))).collect(), changes)
        });
        let lives = world.lives();
        let replicas = lives.iter().filter_map(|(_, life)| life.replica());
        let last = replicas.map(|replica| replica.local_view(|_| ()).revision.get()).max();
        Self { by_revision, policy_changes, last: last.unwrap_or(0) }
    }

    /// What has this revision; the outer `None` is a gap.
    pub(super) fn at(&self, revision: u64) -> Option<Option<&Happened>> {
        self.by_revision.get(&revision).map(Option::as_ref)
    }

    /// Everything about resources, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Happened)> {
        self.by_revision.iter().filter_map(|(revision, happened)| Some((*revision, happened.as_ref()?)))
    }

    /// The revisions at which the limits changed.
    pub(super) fn policy_changes(&self) -> impl Iterator<Item = u64> {
        self.policy_changes.iter().copied()
    }

    /// Whether the grant `next` is known to be the one that followed the grant `token` of the same resource.
    pub(super) fn grant_follows(&self, token: u64, next: u64) -> bool {
        if next <= token {
            return false;
        }
        let of_it = |revision| self.at(revision).flatten().map(|happened| happened.resource.as_str());
        let resource = of_it(token);
        let between = self.by_revision.range(token + 1..next).filter_map(|(_, happened)| happened.as_ref());
        self.is_whole(token, next)
            && resource == of_it(next)
            && !between
                .filter(|happened| Some(happened.resource.as_str()) == resource)
                .any(|happened| matches!(happened.change, Change::Granted { .. }))
    }

    /// When the grant `next`'s request joined the queue; `None` for one that didn't wait. Without a gap since `token`.
    pub(super) fn queued_ms(&self, token: u64, next: u64) -> Option<u64> {
        let granted = self.at(next).flatten()?;
        let is_of_it = |happened: &&Happened| {
            happened.change == Change::Queued
                && (&happened.resource, &happened.owner) == (&granted.resource, &granted.owner)
        };
        let before = self.by_revision.range(..next).rev().filter_map(|(_, happened)| happened.as_ref());
        before.filter(is_of_it).map(|happened| happened.at_ms).next().filter(|_| self.is_whole(token, next))
    }

    /// Whether no revision is missing between two.
    pub(super) fn is_whole(&self, from: u64, to: u64) -> bool {
        self.by_revision.range(from..=to).count() as u64 == (to - from).saturating_add(1)
    }
}

fn happened(event: &Event) -> Option<Happened> {
    let EventKind::Resource { resource, owner, change } = &event.kind else { return None };
    Some(Happened {
        resource: resource.to_string(),
        owner: owner.to_string(),
        change: change.clone(),
        at_ms: event.at.as_ms(),
    })
}
