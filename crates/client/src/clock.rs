//! The time that leases are counted by, as the client sees it.
//!
//! Owns: local instants that go on while the machine is suspended, and the seam through which a simulator brings its
//! own. Never: a wall clock; an instant never leaves the process.

mod boot;

use futures::future::BoxFuture;
use std::fmt;
use std::time::Duration;

pub use boot::BootClock;

/// A local instant: how long after the clock's beginning it is. Instants of two clocks have nothing to do with each
/// other.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    /// The instant `after` the clock's beginning.
    pub const fn at(after: Duration) -> Self {
        Self(after)
    }

    /// How long after the clock's beginning it is.
    pub const fn since_beginning(self) -> Duration {
        self.0
    }

    /// The instant `duration` later; the last one there is when that would pass it.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// The instant `duration` earlier; the clock's beginning when that would pass it.
    #[must_use]
    pub const fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }

    /// How long after `earlier` this is; nothing when it isn't later.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{:?}", self.0)
    }
}

/// Where a client's time comes from.
///
/// It never goes back, and it goes on while the machine is suspended: a lease does so too.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The instant that it is.
    fn now(&self) -> Moment;

    /// Makes a timer of this clock. Called inside the runtime that will wait for it.
    fn alarm(&self) -> Box<dyn Alarm>;
}

/// Rings at an instant of its clock.
pub trait Alarm: Send {
    /// Returns once `at` has come, at once when it is past. May be dropped and called again.
    fn ring_at(&mut self, at: Moment) -> BoxFuture<'_, ()>;
}

/// The clock of tokio's runtime, for simulators and tests that own it. It stands still during suspend; in a simulated
/// process it is the clock that goes on.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeClock {
    beginning: tokio::time::Instant,
}

impl RuntimeClock {
    /// Begins now.
    pub fn new() -> Self {
        Self { beginning: kunci_process::boot_now() }
    }
}

impl Default for RuntimeClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Moment {
        Moment(kunci_process::boot_now().saturating_duration_since(self.beginning))
    }

    fn alarm(&self) -> Box<dyn Alarm> {
        Box::new(*self)
    }
}

impl Alarm for RuntimeClock {
    fn ring_at(&mut self, at: Moment) -> BoxFuture<'_, ()> {
        let until = self.beginning.checked_add(at.0);
        Box::pin(async move {
            match until {
                Some(until) => kunci_process::boot_sleep_until(until).await,
                None => std::future::pending().await,
            }
        })
    }
}
