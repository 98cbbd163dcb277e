//! When the operations of an open loop are to start.
//!
//! Owns: the arithmetic of a fixed rate. Never: a clock; nothing that happens moves a start.

use kunci_client::Moment;
use std::num::NonZeroU32;
use std::time::Duration;

const NANOS: u128 = 1_000_000_000;

/// Starts at a fixed rate, the first at the beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    begins: Moment,
    per_second: NonZeroU32,
}

impl Schedule {
    pub(crate) fn new(begins: Moment, per_second: NonZeroU32) -> Self {
        Self { begins, per_second }
    }

    /// The start of the operation with this number, from 0. Each is computed from the beginning, so that no rounding adds
    /// up.
    pub(crate) fn start(&self, number: u64) -> Moment {
        let nanos = u128::from(number) * NANOS / self.rate();
        let whole = u64::try_from(nanos / NANOS).unwrap_or(u64::MAX);
        let rest = u32::try_from(nanos % NANOS).unwrap_or(0);
        self.begins.plus(Duration::new(whole, rest))
    }

    /// How many starts lie before `end`.
    pub(crate) fn starts_before(&self, end: Moment) -> u64 {
        // Starts are rounded down to whole nanoseconds, and `end` is one: a start lies before it exactly when it did
        // unrounded.
        let numbers = (end.since(self.begins).as_nanos() * self.rate()).div_ceil(NANOS);
        u64::try_from(numbers).unwrap_or(u64::MAX)
    }

    fn rate(&self) -> u128 {
        u128::from(self.per_second.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(per_second: u32) -> Schedule {
        Schedule::new(Moment::at(Duration::from_secs(5)), NonZeroU32::new(per_second).unwrap())
    }

    fn starts(schedule: &Schedule, numbers: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        numbers.into_iter().map(|number| schedule.start(number).since_beginning()).collect()
    }

    #[test]
    fn operations_start_at_even_intervals_from_the_beginning() {
        let ms = |ms: u64| Duration::from_millis(5_000 + ms);
        assert_eq!(starts(&schedule(4), 0..5), [ms(0), ms(250), ms(500), ms(750), ms(1_000)]);
    }

    #[test]
    fn a_rate_that_does_not_divide_a_second_does_not_drift() {
        let schedule = schedule(3);
        assert_eq!(
            starts(&schedule, [3, 3_000_000]),
            [Duration::from_secs(6), Duration::from_secs(1_000_005)]
        );
    }

    #[test]
    fn the_starts_before_an_end_are_exactly_those_that_lie_before_it() {
        for rate in [1, 3, 7, 1_000, 999_983] {
            let schedule = schedule(rate);
            for nanos in [0, 1, 333_333_333, 333_333_334, 999_999_999, 1_000_000_000, 2_500_000_001] {
                let end = Moment::at(Duration::from_secs(5) + Duration::from_nanos(nanos));
                let count = schedule.starts_before(end);
                assert!(schedule.start(count) >= end, "{rate}/s, {nanos} ns");
                assert!(count == 0 || schedule.start(count - 1) < end, "{rate}/s, {nanos} ns");
            }
            assert_eq!(schedule.starts_before(Moment::at(Duration::ZERO)), 0);
        }
    }

    #[test]
    fn the_largest_numbers_neither_wrap_nor_panic() {
        assert!(schedule(1).start(u64::MAX) > schedule(u32::MAX).start(u64::MAX));
        schedule(u32::MAX).starts_before(Moment::at(Duration::MAX));
    }
}
