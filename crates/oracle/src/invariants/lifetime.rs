//! How long a lease must last at least.
//!
//! Owns: the arithmetic of section 4 as a client may do it. A client counts the remaining time of an answer from
//! before it asked; the cluster's clock never runs ahead of real time by more than 500 ppm; so by this machine's
//! clock the lease can't be over before then, unless its holder ended it.

use super::facts::{Facts, Lease};
use crate::history::{Call, Op, Position, Told};

/// Parts of a million that the cluster's clock may be fast.
const RATE_ERROR_PPM: u64 = 500;

/// Until when, on the clock of the history, a lease can't be over by time alone, from answers before a position.
pub(super) fn guaranteed_until_us(facts: &Facts<'_>, lease: &Lease<'_>, before: Position) -> Option<u64> {
    // With nothing left it is due: the entry that ends it may be on its way, and older than the look.
    let told = told_remaining(facts, lease, before).filter(|(_, remaining_ms)| *remaining_ms > 0);
    let until = told.map(|(call, remaining_ms)| {
        // A waiter's lease begins at its grant, after the call began; so this is early, and safe.
        call.began_us + at_least_us(remaining_ms)
    });
    until.max()
}

/// What so many milliseconds of the cluster's time are at least on this machine's clock.
pub(super) fn at_least_us(ms: u64) -> u64 {
    let real_us = ms * 1_000;
    real_us - real_us * RATE_ERROR_PPM / 1_000_000
}

/// When it is over by time alone, at the latest: as if each answer had been true until it came.
pub(super) fn over_by_us(facts: &Facts<'_>, lease: &Lease<'_>, before: Position) -> Option<u64> {
    told_remaining(facts, lease, before)
        .map(|(call, remaining_ms)| call.ended_us + remaining_ms * 1_000)
        .max()
}

/// Every answer before a position that says how long the lease lasts.
fn told_remaining<'f, 'a>(
    facts: &'f Facts<'a>,
    lease: &'f Lease<'_>,
    before: Position,
) -> impl Iterator<Item = (&'a Call, u64)> {
    let of_lease = facts.of(lease.resource).take_while(move |fact| fact.at < before);
    of_lease.filter_map(move |fact| {
        let remaining_ms = match &fact.told {
            Told::Granted { token, remaining_ms, .. } if *token == lease.token => *remaining_ms,
            Told::Renewed { remaining_ms } if means(&fact.call.op, lease) => *remaining_ms,
            Told::Status { held: Some(held), .. } if held.token == lease.token => held.remaining_ms,
            _ => return None,
        };
        Some((fact.call, remaining_ms))
    })
}

/// Whether its holder may have ended it by the time that this call was answered.
pub(super) fn may_be_released(lease: &Lease<'_>, by: &Call) -> bool {
    lease.releases.iter().any(|release| release.may_have_applied() && release.began_us <= by.ended_us)
}

fn means(op: &Op, lease: &Lease<'_>) -> bool {
    matches!(op, Op::Renew { lease: id, .. } if *id == lease.id)
}
