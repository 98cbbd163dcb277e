//! The clocks of a simulated process.
//!
//! Owns: how far they are from the world's clock: their rate error, and what they missed while suspended. Never: goes
//! back.

use std::time::Duration;
use tokio::time::Instant;

/// Parts of a rate that are one.
const MILLION: i128 = 1_000_000;

/// Which of a process's clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// Stands still during suspend: what programs read by default.
    Monotonic,
    /// Goes on during suspend.
    Boot,
}

/// Both clocks as they were at one instant of the world, and how fast they go since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    world: Instant,
    monotonic: Instant,
    boot: Instant,
    /// How much faster than the world they go, in millionths.
    rate_ppm: i32,
    is_suspended: bool,
}

impl Clocks {
    /// Both begin at the world's time, and go as fast.
    pub(crate) fn start(world: Instant) -> Self {
        Self { world, monotonic: world, boot: world, rate_ppm: 0, is_suspended: false }
    }

    /// What it shows when it is `world`.
    pub(crate) fn at(&self, world: Instant, which: Which) -> Instant {
        let passed = self.scaled(world.saturating_duration_since(self.world));
        match which {
            Which::Monotonic if self.is_suspended => self.monotonic,
            Which::Monotonic => self.monotonic + passed,
            Which::Boot => self.boot + passed,
        }
    }

    /// The world's time when it will show `local`, at the rate of now, without a suspend from `world` on. `None` when that
    /// is too far away to be written.
    pub(crate) fn when(&self, world: Instant, local: Instant, which: Which) -> Option<Instant> {
        let (from, shown) = match which {
            Which::Monotonic if self.is_suspended => (world, self.monotonic),
            Which::Monotonic => (self.world, self.monotonic),
            Which::Boot => (self.world, self.boot),
        };
        let wait = nanos(local.saturating_duration_since(shown)) * MILLION;
        let rate = self.rate();
        from.checked_add(duration((wait + rate - 1) / rate)?)
    }

    pub(crate) fn set_rate(&mut self, world: Instant, rate_ppm: i32) {
        self.mark(world);
        self.rate_ppm = rate_ppm;
    }

    pub(crate) fn set_suspended(&mut self, world: Instant, is_suspended: bool) {
        self.mark(world);
        self.is_suspended = is_suspended;
    }

    fn mark(&mut self, world: Instant) {
        (self.monotonic, self.boot) = (self.at(world, Which::Monotonic), self.at(world, Which::Boot));
        self.world = world;
    }

    /// How much a clock does in a million of the world: one at least, since a clock never stands still by its rate.
    fn rate(&self) -> i128 {
        (MILLION + i128::from(self.rate_ppm)).max(1)
    }

    fn scaled(&self, passed: Duration) -> Duration {
        duration(nanos(passed) * self.rate() / MILLION).unwrap_or(Duration::MAX)
    }
}

fn nanos(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX / MILLION / 2)
}

fn duration(nanos: i128) -> Option<Duration> {
    const SECOND: i128 = 1_000_000_000;
    Some(Duration::new(u64::try_from(nanos / SECOND).ok()?, u32::try_from(nanos % SECOND).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[tokio::test(start_paused = true)]
    async fn a_clock_errs_by_its_rate_and_no_more() {
        let world = Instant::now();
        let mut clocks = Clocks::start(world);
        clocks.set_rate(world, 500);
        let shown = clocks.at(world + HOUR, Which::Monotonic);
        assert_eq!(shown - world, HOUR + Duration::from_millis(1_800));
        clocks.set_rate(world + HOUR, -500);
        assert_eq!(clocks.at(world + HOUR, Which::Monotonic), shown);
        assert_eq!(clocks.at(world + HOUR * 2, Which::Monotonic) - world, HOUR * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_clock_of_the_boot_goes_on_during_suspend() {
        let world = Instant::now();
        let mut clocks = Clocks::start(world);
        clocks.set_suspended(world + HOUR, true);
        clocks.set_suspended(world + HOUR * 3, false);
        assert_eq!(clocks.at(world + HOUR * 4, Which::Monotonic) - world, HOUR * 2);
        assert_eq!(clocks.at(world + HOUR * 4, Which::Boot) - world, HOUR * 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_shows_a_time_when_it_said_it_would_and_not_before() {
        let world = Instant::now();
        for rate_ppm in [-2_000_000, -999_999, -500, -1, 0, 1, 333, 500, 100_000, i32::MAX] {
            let mut clocks = Clocks::start(world);
            clocks.set_rate(world, rate_ppm);
            for nanos in [0, 1, 7, 1_000_003, 86_400_000_000_001] {
                let local = world + Duration::from_nanos(nanos);
                let when = clocks.when(world, local, Which::Boot).unwrap();
                assert!(clocks.at(when, Which::Boot) >= local, "{rate_ppm} {nanos}");
                if when > world {
                    let before = when - Duration::from_nanos(1);
                    assert!(clocks.at(before, Which::Boot) < local, "{rate_ppm} {nanos}");
                }
            }
        }
    }
}
