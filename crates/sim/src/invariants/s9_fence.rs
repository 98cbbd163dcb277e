//! S9: once a protected thing has let token n in, it lets no smaller one in; equal ones pass.

use super::{Case, Found};
use std::collections::BTreeMap;

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let mut largest: BTreeMap<&str, u64> = BTreeMap::new();
    let mut found = Vec::new();
    for write in &case.gathered.writes {
        let largest = largest.entry(&write.resource).or_default();
        if write.is_accepted != (write.token >= *largest) {
            let what = if write.is_accepted { "was let in" } else { "was refused" };
            let text = format!(
                "{}: token {} of {} {what} at {:.3} s, after token {largest}",
                write.resource,
                write.token,
                write.who,
                super::seconds(write.at_us)
            );
            found.push(Found::new(text, &[]));
        }
        if write.is_accepted {
            *largest = write.token.max(*largest);
        }
    }
    found
}
