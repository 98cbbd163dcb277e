//! L4, its other half: once nothing is at fault, the cluster goes on serving. That it serves at all again is looked at in
//! `world/observe.rs`.

use super::{Case, Found};

/// With five clients at work, so long without any answer that a node decided is no chance any more.
const GAP_MAX_US: u64 = 4_000_000;

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let Some(well) = &case.gathered.well else { return Vec::new() };
    let is_served = |status: u16| status < 500;
    let ends =
        case.calls().iter().filter(|call| call.answer().is_some_and(|answer| is_served(answer.status)));
    let mut ends: Vec<u64> = ends.map(|call| call.ended_us).filter(|end| well.contains(end)).collect();
    ends.extend([well.start, well.end]);
    ends.sort_unstable();
    let gaps = ends.windows(2).filter(|pair| pair[1] - pair[0] > GAP_MAX_US);
    gaps.map(|pair| {
        let text = format!(
            "nobody was served from {:.3} to {:.3} s, though nothing was at fault",
            super::seconds(pair[0]),
            super::seconds(pair[1])
        );
        Found::new(text, &[])
    })
    .collect()
}
