//! S6: waiters are served in the order in which they came, and nobody barges. The rule is the oracle's.

use super::{Case, Found};

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    case.breaches_of("S6")
}
