//! S3: only the current lease id renews or releases. What clients were told says so; the rule is the oracle's.

use super::{Case, Found};

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    case.breaches_of("S3")
}
