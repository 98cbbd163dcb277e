//! The one clock of the command line: it goes on while the machine is suspended.
//!
//! Owns: `CLOCK_BOOTTIME`, its instants, and a timer that rings by it. Never: the wall clock; a lease is never
//! counted by it.

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// An instant of this machine since it booted, suspended time included. Never leaves the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    /// The instant that it is.
    pub(crate) fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        // Neither is negative: the clock began at boot, and nanoseconds are a remainder.
        Self(Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0)))
    }

    /// The instant `after` the boot, for tests with a clock of their own.
    #[cfg(test)]
    pub(crate) fn since_boot(after: Duration) -> Self {
        Self(after)
    }

    /// The instant `duration` later.
    pub(crate) fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// The instant `duration` earlier; the boot when there is none.
    pub(crate) fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }

    /// How long after `earlier` this is; nothing when it isn't later.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "boot+{:?}", self.0)
    }
}

/// Rings at a [`Moment`]; after a suspend at once, where an ordinary timer would sleep on.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: AsyncFd<OwnedFd>,
}

impl Alarm {
    /// Makes an alarm that isn't set.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        #[expect(unsafe_code, reason = "tokio can't know that the descriptor stays the same and stays open")]
        // SAFETY: an `OwnedFd` always gives the same descriptor and keeps it open until it is dropped, which is after
        // its registration ends; nothing takes it out before.
        let timer = unsafe { AsyncFd::register(timer)? };
        Ok(Self { timer })
    }

    /// Returns once `at` has come. May be dropped and called again.
    pub(crate) async fn ring_at(&self, at: Moment) -> io::Result<()> {
        let not_repeated = Timespec { tv_sec: 0, tv_nsec: 0 };
        // All zero would switch the timer off; the boot is long past, so a nanosecond after it rings at once.
        let at_least = at.0.max(Duration::from_nanos(1));
        let seconds = i64::try_from(at_least.as_secs()).unwrap_or(i64::MAX);
        let first = Timespec { tv_sec: seconds, tv_nsec: at_least.subsec_nanos().into() };
        let when = Itimerspec { it_interval: not_repeated, it_value: first };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &when)?;
        while Moment::now() < at {
            let mut guard = self.timer.readable().await?;
            let mut rings = [0_u8; 8];
            match rustix::io::read(guard.get_inner(), &mut rings) {
                Ok(_) => {}
                Err(rustix::io::Errno::AGAIN) => guard.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_alarm_rings_when_its_moment_has_come_and_not_before() {
        let alarm = Alarm::new().unwrap();
        for _ in 0..3 {
            let at = Moment::now().plus(Duration::from_millis(20));
            alarm.ring_at(at).await.unwrap();
            assert!(Moment::now() >= at);
        }
        alarm.ring_at(Moment::since_boot(Duration::ZERO)).await.unwrap();
    }
}
