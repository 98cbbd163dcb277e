//! The machine's clock since boot, suspended time included.
//!
//! Owns: `CLOCK_BOOTTIME` and a timer that rings by it. Never: fails; without a timer of the system it looks at the
//! clock once in a while instead.

use super::{Alarm, Clock, Moment};
use futures::future::BoxFuture;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// Without a timer of the system, the clock is looked at this often: a suspend is noticed that much later.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// `CLOCK_BOOTTIME`: what every client uses that isn't told otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

fn now() -> Moment {
    let now = clock_gettime(ClockId::Boottime);
    // Neither is negative: the clock began at boot, and nanoseconds are a remainder.
    Moment::at(Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0)))
}

impl Clock for BootClock {
    fn now(&self) -> Moment {
        now()
    }

    fn alarm(&self) -> Box<dyn Alarm> {
        Box::new(BootAlarm { timer: timer().ok() })
    }
}

fn timer() -> io::Result<AsyncFd<OwnedFd>> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
    #[expect(unsafe_code, reason = "tokio can't know that the descriptor stays the same and stays open")]
    // SAFETY: an `OwnedFd` always gives the same descriptor and keeps it open until it is dropped, which is after its
    // registration ends; nothing takes it out before.
    let timer = unsafe { AsyncFd::register(timer)? };
    Ok(timer)
}

struct BootAlarm {
    /// `None` when the system has no more descriptors.
    timer: Option<AsyncFd<OwnedFd>>,
}

impl Alarm for BootAlarm {
    fn ring_at(&mut self, at: Moment) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(timer) = &self.timer
                && ring_by(timer, at).await.is_ok()
            {
                return;
            }
            while now() < at {
                kunci_process::sleep(LOOK_EVERY.min(at.since(now()))).await;
            }
        })
    }
}

async fn ring_by(timer: &AsyncFd<OwnedFd>, at: Moment) -> io::Result<()> {
    let not_repeated = Timespec { tv_sec: 0, tv_nsec: 0 };
    // All zero would switch the timer off; the boot is long past, so a nanosecond after it rings at once.
    let at_least = at.since_beginning().max(Duration::from_nanos(1));
    let seconds = i64::try_from(at_least.as_secs()).unwrap_or(i64::MAX);
    let first = Timespec { tv_sec: seconds, tv_nsec: at_least.subsec_nanos().into() };
    let when = Itimerspec { it_interval: not_repeated, it_value: first };
    timerfd_settime(timer.get_ref(), TimerfdTimerFlags::ABSTIME, &when)?;
    while now() < at {
        let mut guard = timer.readable().await?;
        let mut rings = [0_u8; 8];
        match rustix::io::read(guard.get_inner(), &mut rings) {
            Ok(_) => {}
            Err(rustix::io::Errno::AGAIN) => guard.clear_ready(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_alarm_rings_when_its_moment_has_come_and_not_before() {
        for timer in [timer().ok(), None] {
            let mut alarm = BootAlarm { timer };
            for _ in 0..3 {
                let at = now().plus(Duration::from_millis(20));
                alarm.ring_at(at).await;
                assert!(now() >= at);
            }
            alarm.ring_at(Moment::at(Duration::ZERO)).await;
        }
    }
}
