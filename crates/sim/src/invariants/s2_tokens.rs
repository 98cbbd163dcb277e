//! S2: tokens grow, cluster-wide and for ever: in what clients were told, and what protected things were shown is among
//! what was committed.

use super::{Case, Found};
use kunci_core::event::Change;

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let mut found = case.breaches_of("S2");
    for write in &case.gathered.writes {
        if let Some(happened) = case.committed.at(write.token) {
            let is_grant = happened.is_some_and(|happened| {
                matches!(happened.change, Change::Granted { .. })
                    && happened.resource == write.resource
                    && happened.owner == write.who
            });
            if !is_grant {
                let text = format!(
                    "{} wrote to {} under token {}, which is no grant to it",
                    write.who, write.resource, write.token
                );
                found.push(Found::new(text, &[]));
            }
        }
    }
    found
}
