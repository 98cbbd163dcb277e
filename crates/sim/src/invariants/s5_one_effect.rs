//! S5: one request id is granted at most once, on whichever node it is repeated. The rule is the oracle's.

use super::{Case, Found};

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    case.breaches_of("S5")
}
