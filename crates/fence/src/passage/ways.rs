//! Who is on the way to which resource, what was lost sight of, and who waits.
//!
//! Owns: the book of it. Never: waits, or looks at a clock.

use kunci_types::{FencingToken, ResourceName};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use tokio::sync::watch;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Ways {
    /// Only of resources that have something on the way, lost, or waiting.
    pub(super) by_resource: HashMap<ResourceName, Way>,
    /// What was lost, by the time at which it can't have an effect any more.
    pub(super) lost: VecDeque<(Instant, ResourceName)>,
    pub(super) on_the_way: usize,
    pub(super) waiting: usize,
    /// While there is doubt: the resources that a token of this process has moved up.
    pub(super) moved_up: HashSet<ResourceName>,
}

/// The way to one resource.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// How many of each token are on the way.
    pub(super) on_the_way: BTreeMap<FencingToken, usize>,
    /// Until when those of a token that were lost may have an effect.
    pub(super) lost: BTreeMap<FencingToken, Instant>,
    /// How many wait.
    pub(super) waiting: usize,
    /// The largest token that waits or waited, for those on the way to see.
    pub(super) newest: watch::Sender<Option<FencingToken>>,
    /// Changes whenever something ends.
    pub(super) ended: watch::Sender<()>,
}

/// What stands in a request's way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Obstacle {
    pub(super) older: FencingToken,
    /// When it ends by itself; `None` when it is on the way.
    pub(super) until: Option<Instant>,
}

impl Way {
    pub(super) fn obstacle(&self, token: FencingToken) -> Option<Obstacle> {
        let on_the_way = self.on_the_way.keys().next().filter(|older| **older < token);
        if let Some(older) = on_the_way {
            return Some(Obstacle { older: *older, until: None });
        }
        let lost = self.lost.range(..token).max_by_key(|(_, until)| **until)?;
        Some(Obstacle { older: *lost.0, until: Some(*lost.1) })
    }

    pub(super) fn is_idle(&self) -> bool {
        self.on_the_way.is_empty() && self.lost.is_empty() && self.waiting == 0
    }
}

impl Ways {
    /// Forgets what can't have an effect any more.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some((until, resource)) = self.lost.pop_front_if(|(until, _)| *until <= now) {
            if let Some(way) = self.by_resource.get_mut(&resource) {
                way.lost.retain(|_, of_token| *of_token > until);
                way.ended.send_replace(());
            }
            self.drop_if_idle(&resource);
        }
    }

    pub(super) fn lose(&mut self, resource: &ResourceName, token: FencingToken, until: Instant) {
        let way = self.by_resource.entry(resource.clone()).or_default();
        let of_token = way.lost.entry(token).or_insert(until);
        *of_token = until.max(*of_token);
        // In order, as every one is lost for the same time; the doubtful ones come first.
        let at = self.lost.partition_point(|(other, _)| *other <= until);
        self.lost.insert(at, (until, resource.clone()));
    }

    pub(super) fn drop_if_idle(&mut self, resource: &ResourceName) {
        if self.by_resource.get(resource).is_some_and(Way::is_idle) {
            self.by_resource.remove(resource);
        }
    }
}

/// Whether `token` is larger than the newest so far, and is the newest now.
pub(super) fn raise(newest: &mut Option<FencingToken>, token: FencingToken) -> bool {
    let is_newer = newest.is_none_or(|newest| newest < token);
    if is_newer {
        *newest = Some(token);
    }
    is_newer
}
