//! The time of the process that asks.
//!
//! Owns: reading its clock, and timers that ring by it. Never: mixes two processes' instants; they have nothing to do
//! with each other.

use crate::clock::Which;
use crate::current;
use crate::process::Process;
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::coop;
use tokio::time::Instant;

/// Stands for an instant that can't be written: thirty years, as in tokio.
const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
/// A tick that comes later than this moves those that follow.
const LATE: Duration = Duration::from_millis(5);

/// What the process's clock shows that stands still during suspend. In a program, `Instant::now`.
pub fn now() -> Instant {
    current::look(Process::now).unwrap_or_else(Instant::now)
}

/// What a simulated process's clock shows that goes on during suspend. A program has none here: it is `now`.
pub fn boot_now() -> Instant {
    current::look(Process::boot_now).unwrap_or_else(Instant::now)
}

/// How long ago `earlier` was; nothing when it is to come. In a program, `Instant::elapsed`.
pub fn since(earlier: Instant) -> Duration {
    now().saturating_duration_since(earlier)
}

/// Waits for so long. In a program, tokio's.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(after(duration))
}

/// Waits until the process's clock shows `deadline`. In a program, tokio's.
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::new(deadline, Which::Monotonic)
}

/// Waits until `boot_now` is `deadline`.
pub fn boot_sleep_until(deadline: Instant) -> Sleep {
    Sleep::new(deadline, Which::Boot)
}

/// Gives a future so much time. In a program, tokio's.
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    timeout_at(after(duration), future)
}

/// Gives a future time until the process's clock shows `deadline`. In a program, tokio's.
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout { future: future.into_future(), sleep: sleep_until(deadline) }
}

/// Ticks at once, then each `period`; after a late tick the next is a whole period later. In a program, tokio's with
/// `MissedTickBehavior::Delay`.
pub fn interval(period: Duration) -> Interval {
    Interval { sleep: Box::pin(sleep_until(now())), period }
}

fn after(duration: Duration) -> Instant {
    let now = now();
    now.checked_add(duration).unwrap_or_else(|| now + FAR)
}

pin_project! {
    /// Rings at an instant of its process's clock.
    #[derive(Debug)]
    #[must_use = "it waits only while it is polled"]
    pub struct Sleep {
        #[pin]
        sleep: tokio::time::Sleep,
        deadline: Instant,
        // Whose clock; `None` is the real process's.
        by: Option<(Process, Which)>,
    }
}

impl Sleep {
    fn new(deadline: Instant, which: Which) -> Self {
        let by = current::current().map(|process| (process, which));
        Self { sleep: tokio::time::sleep_until(in_world(by.as_ref(), deadline)), deadline, by }
    }

    /// When it rings, by its process's clock.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether it rang.
    pub fn is_elapsed(&self) -> bool {
        self.sleep.is_elapsed()
    }

    /// Lets it ring at another instant, whether it rang or not.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.project();
        *this.deadline = deadline;
        this.sleep.reset(in_world(this.by.as_ref(), deadline));
    }
}

/// The world's time when the clock will show `deadline`.
fn in_world(by: Option<&(Process, Which)>, deadline: Instant) -> Instant {
    let Some((process, which)) = by else { return deadline };
    let world = Instant::now();
    process.clocks().when(world, deadline, *which).unwrap_or(world + FAR)
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        loop {
            ready!(this.sleep.as_mut().poll(context));
            let Some((process, which)) = this.by.as_ref() else { return Poll::Ready(()) };
            // The clock may have stood still, or become slower.
            let (clocks, world) = (*process.clocks(), Instant::now());
            if clocks.at(world, *which) >= *this.deadline {
                return Poll::Ready(());
            }
            let when = clocks.when(world, *this.deadline, *which).unwrap_or(world + FAR);
            this.sleep.as_mut().reset(when);
        }
    }
}

pin_project! {
    /// A future, or the end of its time, whichever comes first.
    #[derive(Debug)]
    #[must_use = "it does nothing unless it is polled"]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        #[pin]
        sleep: Sleep,
    }
}

/// The time was over first.
#[derive(Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time was over before the answer came")
    }
}

impl std::error::Error for Elapsed {}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let had_budget = coop::has_budget_remaining();
        if let Poll::Ready(output) = this.future.poll(context) {
            return Poll::Ready(Ok(output));
        }
        // A future that always uses up its turn must not keep its own time from ending.
        let rang = if had_budget && !coop::has_budget_remaining() {
            Pin::new(&mut coop::unconstrained(this.sleep.as_mut())).poll(context)
        } else {
            this.sleep.poll(context)
        };
        rang.map(|()| Err(Elapsed))
    }
}

/// Ticks each period.
#[derive(Debug)]
pub struct Interval {
    sleep: Pin<Box<Sleep>>,
    period: Duration,
}

impl Interval {
    /// Returns at the next tick. May be dropped and called again.
    pub async fn tick(&mut self) {
        self.sleep.as_mut().await;
        let (due, now) = (self.sleep.deadline(), now());
        let from = if now.saturating_duration_since(due) > LATE { now } else { due };
        let next = from.checked_add(self.period).unwrap_or(now + FAR);
        self.sleep.as_mut().reset(next);
    }
}
