//! S8: reads show what was so at their place in the log, and that place isn't before what had been answered earlier.

use super::{Case, Found};

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let mut found = case.breaches_of("S8");
    found.extend(case.breaches_of("log order"));
    found
}
