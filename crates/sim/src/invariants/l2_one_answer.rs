//! L2: every request gets its answer, or its connection ends. A call on a connection that stays open and silent is the
//! breach; judged once nothing is at fault, since a way that is cut is silent, too.

use super::{Case, Found};
use kunci_oracle::{Op, Outcome};

/// Clients that mean to hear the answer wait for so long beyond the wait that they ask for.
const WITHIN_US: u64 = 2_400_000;

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let Some(well) = &case.gathered.well else { return Vec::new() };
    let later = case.calls().iter().filter(|call| call.began_us > well.start && call.ended_us < well.end);
    let silent = later.filter(|call| {
        let wait_us = if let Op::Acquire { wait_ms, .. } = call.op { wait_ms * 1_000 } else { 0 };
        matches!(call.outcome, Outcome::Unknown(_)) && call.ended_us - call.began_us >= WITHIN_US + wait_us
    });
    silent.map(|call| Found::new("nothing was answered", &[call])).collect()
}
