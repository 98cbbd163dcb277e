//! S1: a resource has at most one current lease: in what clients were told, and in what was committed.

use super::{Case, Found};
use kunci_core::event::Change;
use std::collections::BTreeMap;

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let mut found = case.breaches_of("S1");
    let mut holders: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for (revision, happened) in case.committed.iter() {
        let resource = happened.resource.as_str();
        match &happened.change {
            Change::Granted { .. } => {
                if let Some((token, owner)) = holders.insert(resource, (revision, &happened.owner))
                    && case.committed.is_whole(token, revision)
                {
                    let text = format!(
                        "{resource} was granted to {} with token {revision} at cluster time {} ms, while {owner} held it with token {token}",
                        happened.owner, happened.at_ms
                    );
                    found.push(Found::new(text, &[]));
                }
            }
            Change::Released { .. }
            | Change::Expired { .. }
            | Change::Forced { .. }
            | Change::Abandoned { .. } => {
                holders.remove(resource);
            }
            Change::Queued | Change::TimedOut | Change::Cancelled | Change::Dropped => {}
        }
    }
    found
}
