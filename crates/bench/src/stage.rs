//! One run's time: what is counted, when the next operation starts, when it is over.
//!
//! Owns: the window that is counted, and handing out starts. Never: does an operation.

use crate::plan::{Pace, Plan};
use crate::schedule::Schedule;
use kunci_client::{Alarm, Clock, Moment};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// An operation that begins this much after its time is late: a timer of the system may take most of that.
const LATE_AFTER: Duration = Duration::from_millis(1);

/// One run, from the warm-up to its end.
#[derive(Debug)]
pub(crate) struct Stage {
    clock: Arc<dyn Clock>,
    schedule: Option<Schedule>,
    began_at: Moment,
    counted_from: Moment,
    until: Moment,
    /// Somebody wants it to end early.
    stop: CancellationToken,
    /// Cancelled at the end, early or not.
    over: CancellationToken,
    ended_at: OnceLock<Moment>,
    taken: AtomicU64,
    begun: AtomicU64,
    late: AtomicU64,
}

/// What an open loop couldn't start in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overload {
    /// Begun more than a millisecond after their time.
    pub(crate) late: u64,
    /// Due, and never begun.
    pub(crate) never_begun: u64,
}

impl Stage {
    /// Begins the warm-up now.
    pub(crate) fn begin(clock: Arc<dyn Clock>, plan: &Plan, stop: CancellationToken) -> Arc<Self> {
        let began_at = clock.now();
        let counted_from = began_at.plus(plan.warm_up);
        let schedule = match plan.pace {
            Pace::Closed => None,
            Pace::Open { per_second } => Some(Schedule::new(began_at, per_second)),
        };
        Arc::new(Self {
            schedule,
            began_at,
            counted_from,
            until: counted_from.plus(plan.duration),
            over: stop.child_token(),
            stop,
            ended_at: OnceLock::new(),
            taken: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            late: AtomicU64::new(0),
            clock,
        })
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Whether an operation that was to start then is counted.
    pub(crate) fn counts(&self, started_at: Moment) -> bool {
        (self.counted_from..self.until).contains(&started_at)
    }

    /// When the warm-up began.
    pub(crate) fn began_at(&self) -> Moment {
        self.began_at
    }

    /// When operations are counted from.
    pub(crate) fn counted_from(&self) -> Moment {
        self.counted_from
    }

    /// Waits for the end, and says so to everybody.
    pub(crate) async fn end(&self) {
        self.stop.run_until_cancelled(self.clock.alarm().ring_at(self.until)).await;
        self.ended_at.get_or_init(|| self.now().min(self.until));
        self.over.cancel();
    }

    /// Cancelled at the end.
    pub(crate) fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// When it ended; `None` before.
    pub(crate) fn ended_at(&self) -> Option<Moment> {
        self.ended_at.get().copied()
    }

    pub(crate) fn is_stopped_early(&self) -> bool {
        self.ended_at().is_none_or(|ended_at| ended_at < self.until)
    }

    /// How long operations were counted.
    pub(crate) fn counted(&self) -> Duration {
        self.ended_at().map_or(Duration::ZERO, |ended_at| ended_at.since(self.counted_from))
    }

    /// How an open loop kept its rate; `None` of a closed one.
    pub(crate) fn overload(&self) -> Option<Overload> {
        let schedule = self.schedule.as_ref()?;
        let ended_at = self.ended_at().unwrap_or(self.counted_from).max(self.counted_from);
        let due = schedule.starts_before(ended_at) - schedule.starts_before(self.counted_from);
        Some(Overload {
            late: self.late.load(Ordering::Relaxed),
            never_begun: due.saturating_sub(self.begun.load(Ordering::Relaxed)),
        })
    }

    /// The starts of one client.
    pub(crate) fn turns(self: &Arc<Self>) -> Turns {
        let alarm = self.schedule.is_some().then(|| self.clock.alarm());
        Turns { stage: self.clone(), alarm }
    }

    fn begins(&self, start: Moment) {
        if !self.counts(start) {
            return;
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        if self.now().since(start) > LATE_AFTER {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Hands a client one start after another.
pub(crate) struct Turns {
    stage: Arc<Stage>,
    alarm: Option<Box<dyn Alarm>>,
}

impl Turns {
    /// Returns when the client's next operation is to start, which is then due: now in a closed loop, and in an open one
    /// the next start that nobody has taken, be it long past. `None` when it is over.
    pub(crate) async fn next(&mut self) -> Option<Moment> {
        let stage = &*self.stage;
        let now = stage.now();
        if stage.over.is_cancelled() || now >= stage.until {
            return None;
        }
        let (Some(schedule), Some(alarm)) = (&stage.schedule, &mut self.alarm) else { return Some(now) };
        if now >= stage.counted_from {
            // What the warm-up couldn't begin isn't made up for: nobody would see in the figures why they are bad.
            stage.taken.fetch_max(schedule.starts_before(stage.counted_from), Ordering::Relaxed);
        }
        let start = schedule.start(stage.taken.fetch_add(1, Ordering::Relaxed));
        if start >= stage.until {
            return None;
        }
        if now < start {
            // Not until it is over: a start that was taken before the end is kept.
            stage.stop.run_until_cancelled(alarm.ring_at(start)).await?;
        }
        stage.begins(start);
        Some(start)
    }

    /// Whether starts come at a rate.
    pub(crate) fn is_paced(&self) -> bool {
        self.alarm.is_some()
    }

    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Workload;
    use kunci_client::RuntimeClock;
    use std::num::NonZeroU32;

    fn stage(pace: Pace) -> (Arc<Stage>, CancellationToken) {
        let plan = Plan::new(Workload::Reads, pace);
        let stop = CancellationToken::new();
        (Stage::begin(Arc::new(RuntimeClock::new()), &plan, stop.clone()), stop)
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_starts_after_the_warm_up_and_before_the_end_is_counted() {
        let (stage, _) = stage(Pace::Closed);
        let at = |ms| stage.began_at.plus(Duration::from_millis(ms));
        let counted = [1_999, 2_000, 11_999, 12_000].map(|ms| stage.counts(at(ms)));
        assert_eq!(counted, [false, true, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_stopped_early_says_what_was_counted_until_then() {
        let (stage, stop) = stage(Pace::Open { per_second: NonZeroU32::new(10).unwrap() });
        let mut turns = stage.turns();
        let client = async { while turns.next().await.is_some() {} };
        let stopping = async {
            tokio::time::sleep(Duration::from_millis(5_050)).await;
            stop.cancel();
        };
        tokio::join!(client, stopping, stage.end());
        assert!(stage.is_stopped_early());
        assert_eq!(stage.counted(), Duration::from_millis(3_050));
        assert_eq!(stage.overload(), Some(Overload { late: 0, never_begun: 0 }));
    }

    #[tokio::test(start_paused = true)]
    async fn clients_share_the_starts_and_none_is_taken_twice() {
        let (stage, _) = stage(Pace::Open { per_second: NonZeroU32::new(4).unwrap() });
        let mut clients = [stage.turns(), stage.turns(), stage.turns()];
        let starts = futures::future::join_all(clients.iter_mut().map(Turns::next)).await;
        let offsets = starts.into_iter().map(|start| start.unwrap().since(stage.began_at).as_millis());
        assert_eq!(offsets.collect::<Vec<_>>(), [0, 250, 500]);
    }
}
