//! L1: a dead holder's resource reaches the next waiter in time, once nothing is at fault. While something is, the time
//! without a leader comes on top, so that only the end of it can be judged then (see `lost_wake_up`).

use super::{Case, Found};
use kunci_oracle::{Call, Told, hand_overs};

/// The contract's 250 ms of leader time, and what a way may take that loses something now and then.
const WITHIN_MS: u64 = 250 + 1_000;

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let Some(well_since_us) = case.gathered.well_since_us else { return Vec::new() };
    let late = hand_overs(case.calls()).into_iter().filter(|hand_over| hand_over.delay_ms > WITHIN_MS);
    late.filter_map(|hand_over| {
        let next = case.calls().iter().find(|call| grants(call, hand_over.next))?;
        let over_us = next.ended_us.saturating_sub(hand_over.delay_ms * 1_000);
        (over_us > well_since_us).then(|| {
            let text = format!(
                "token {} was over at {:.3} s, and {} ms later its resource came to the next, within {WITHIN_MS} ms expected",
                hand_over.token,
                super::seconds(over_us),
                hand_over.delay_ms
            );
            Found::new(text, &[next])
        })
    })
    .collect()
}

fn grants(call: &Call, wanted: u64) -> bool {
    let told = call.answer().and_then(|answer| Told::read(&call.op, answer).ok());
    matches!(told, Some(Told::Granted { token, repeated: false, .. }) if token == wanted)
}
