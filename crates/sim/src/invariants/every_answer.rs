//! Every answer can be read, and has a reason in what was asked before it.

use super::{Case, Found};

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let mut found = case.breaches_of("an answer");
    found.extend(case.breaches_of("replay"));
    found
}
