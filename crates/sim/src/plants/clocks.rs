//! Clocks of programs that go wrong.

use futures::future::BoxFuture;
use kunci_client::{Alarm, Clock, Moment, RuntimeClock};
use std::time::Duration;
use tokio::time::Instant;

/// Runs at half the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slow(RuntimeClock);

impl Slow {
    pub(super) const fn new(clock: RuntimeClock) -> Self {
        Self(clock)
    }
}

impl Clock for Slow {
    fn now(&self) -> Moment {
        Moment::at(self.0.now().since_beginning() / 2)
    }

    fn alarm(&self) -> Box<dyn Alarm> {
        Box::new(*self)
    }
}

impl Alarm for Slow {
    fn ring_at(&mut self, at: Moment) -> BoxFuture<'_, ()> {
        self.0.ring_at(Moment::at(at.since_beginning() * 2))
    }
}

/// Stands still during suspend.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopping {
    beginning: Instant,
}

impl Stopping {
    pub(super) fn new() -> Self {
        Self { beginning: kunci_process::now() }
    }
}

impl Clock for Stopping {
    fn now(&self) -> Moment {
        Moment::at(kunci_process::since(self.beginning))
    }

    fn alarm(&self) -> Box<dyn Alarm> {
        Box::new(*self)
    }
}

impl Alarm for Stopping {
    fn ring_at(&mut self, at: Moment) -> BoxFuture<'_, ()> {
        let left: Duration = at.since(self.now());
        Box::pin(kunci_process::sleep(left))
    }
}
