//! What a gate keeps.
//!
//! Owns: the comparison, the floor, the bound. Never: locks, disks.

use super::{AdmitError, Rejected};
use kunci_types::{FencingToken, ResourceName};
use std::collections::HashMap;

/// The largest admitted token of each resource. One that isn't in it counts as if the floor had been admitted.
#[derive(Debug)]
pub(super) struct Kept {
    tokens: HashMap<ResourceName, FencingToken>,
    floor: Option<FencingToken>,
    resources_max: usize,
}

/// How a token compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Smaller than the kept one.
    Older(Rejected),
    /// The kept one.
    Equal,
    /// Larger than the kept one, or the first.
    Newer,
}

impl Kept {
    pub(super) fn new(resources_max: usize) -> Self {
        Self { tokens: HashMap::new(), floor: None, resources_max }
    }

    /// The kept token, or the floor.
    pub(super) fn of(&self, resource: &ResourceName) -> Option<FencingToken> {
        self.tokens.get(resource).copied().or(self.floor)
    }

    pub(super) fn weigh(&self, resource: &ResourceName, found: FencingToken) -> Verdict {
        match self.of(resource) {
            Some(kept) if found < kept => {
                Verdict::Older(Rejected { resource: resource.clone(), found, kept })
            }
            Some(kept) if found == kept => Verdict::Equal,
            Some(_) | None => Verdict::Newer,
        }
    }

    /// Whether the resource has an entry of its own.
    pub(super) fn holds(&self, resource: &ResourceName) -> bool {
        self.tokens.contains_key(resource)
    }

    /// Whether there is room for this resource and for so many more that are on their way.
    pub(super) fn has_room(&self, resource: &ResourceName, on_their_way: usize) -> Result<(), AdmitError> {
        if self.holds(resource) || self.tokens.len().saturating_add(on_their_way) < self.resources_max {
            return Ok(());
        }
        Err(AdmitError::Full { resources_max: self.resources_max })
    }

    /// Keeps a token that was weighed as newer.
    pub(super) fn keep(&mut self, resource: &ResourceName, token: FencingToken) -> Result<(), AdmitError> {
        self.has_room(resource, 0)?;
        self.restore(resource.clone(), token);
        Ok(())
    }

    /// Keeps a token that was kept before, whatever the bound says.
    pub(super) fn restore(&mut self, resource: ResourceName, token: FencingToken) {
        let kept = self.tokens.entry(resource).or_insert(token);
        *kept = token.max(*kept);
    }

    /// Forgets what isn't above `floor`, and says how many that were.
    pub(super) fn raise_floor(&mut self, floor: FencingToken) -> usize {
        if self.floor.is_some_and(|present| present >= floor) {
            return 0;
        }
        self.floor = Some(floor);
        let before = self.tokens.len();
        self.tokens.retain(|_, kept| *kept > floor);
        // Not when little was forgotten: making a large table anew takes time.
        if self.tokens.len() < before / 2 {
            self.tokens.shrink_to_fit();
        }
        before - self.tokens.len()
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn floor(&self) -> Option<FencingToken> {
        self.floor
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ResourceName, FencingToken)> {
        self.tokens.iter().map(|(resource, token)| (resource, *token))
    }
}
