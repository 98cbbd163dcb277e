//! The leader's clock: cluster time that never jumps.
//!
//! Owns: the only reading of a local clock that ends in the log. Never: a wall clock.

use kunci_types::ClusterTime;
use std::time::Duration;
use tokio::time::Instant;

/// The most that one sample may add. A machine that was stalled or suspended didn't see its clients' renewals
/// either, so that time doesn't count against their leases.
const SAMPLE_MAX: Duration = Duration::from_millis(250);
/// How often the leader samples at least, so that an idle log is no stall.
pub(crate) const SAMPLE_EVERY: Duration = Duration::from_millis(50);

/// Cluster time as the leader of one term counts it.
#[derive(Clone, Debug)]
pub(crate) struct ClusterClock {
    start: ClusterTime,
    elapsed: Duration,
    sampled: Instant,
    /// What passed and isn't in `elapsed`.
    skipped: Duration,
}

impl ClusterClock {
    /// Begins at the cluster time of the first entry of the leader's term.
    pub(crate) fn start(start: ClusterTime) -> Self {
        Self { start, elapsed: Duration::ZERO, sampled: kunci_process::now(), skipped: Duration::ZERO }
    }

    /// Cluster time now.
    ///
    /// # Guarantee
    /// Never runs ahead of the machine's monotonic clock since the start, and never goes back.
    pub(crate) fn sample(&mut self) -> ClusterTime {
        self.sample_at(kunci_process::now())
    }

    /// What passed since this was last asked and wasn't counted, since the machine stalled.
    pub(crate) fn take_skipped(&mut self) -> Duration {
        std::mem::take(&mut self.skipped)
    }

    fn sample_at(&mut self, now: Instant) -> ClusterTime {
        let passed = now.saturating_duration_since(self.sampled);
        self.elapsed += passed.min(SAMPLE_MAX);
        self.skipped += passed.saturating_sub(SAMPLE_MAX);
        self.sampled = self.sampled.max(now);
        self.start.plus_ms(u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stall_adds_a_quarter_of_a_second_at_most() {
        let mut clock = ClusterClock::start(ClusterTime::from_ms(1_000));
        let start = Instant::now();
        assert_eq!(clock.sample_at(start + Duration::from_millis(40)).as_ms(), 1_040);
        assert_eq!(clock.sample_at(start + Duration::from_secs(60)).as_ms(), 1_290);
        assert_eq!(clock.sample_at(start + Duration::from_secs(60)).as_ms(), 1_290);
    }

    /// Case C30: a clock that steps back changes nothing.
    #[tokio::test(start_paused = true)]
    async fn a_clock_that_steps_back_stands_still() {
        let mut clock = ClusterClock::start(ClusterTime::START);
        let start = Instant::now();
        assert_eq!(clock.sample_at(start + Duration::from_millis(100)).as_ms(), 100);
        assert_eq!(clock.sample_at(start + Duration::from_millis(50)).as_ms(), 100);
        assert_eq!(clock.sample_at(start + Duration::from_millis(110)).as_ms(), 110);
    }

    #[tokio::test(start_paused = true)]
    async fn parts_of_a_millisecond_add_up() {
        let mut clock = ClusterClock::start(ClusterTime::START);
        let start = Instant::now();
        for step in 1..=10_000_u64 {
            clock.sample_at(start + Duration::from_micros(step * 100));
        }
        assert_eq!(clock.sample_at(start + Duration::from_secs(1)).as_ms(), 1_000);
    }
}
