//! S7: nobody else is granted a resource before the lease was over. The rule is the oracle's; every clock of a world keeps
//! to the stated rate error, so that it may be judged in every world.

use super::{Case, Found};

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    case.breaches_of("S7")
}
