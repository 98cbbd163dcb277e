//! What one client of a workload does, turn by turn.
//!
//! Owns: the loop of one client. Never: when a turn starts, or what is counted.

mod acquire_release;
mod hand_off;
mod mix;
mod reads;

pub(crate) use acquire_release::AcquireRelease;
pub(crate) use hand_off::{HandOff, Hot};
pub(crate) use mix::Mix;
pub(crate) use reads::Reads;

use crate::book::{Book, Kind};
use crate::caller::Failed;
use crate::stage::{Stage, Turns};
use kunci_client::Moment;
use std::future::Future;
use std::time::Duration;
use tokio::time::sleep;

/// A client that failed waits so long where no rate slows it down: a refusal may come at once, and again, and again.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);

/// One client of a workload. It holds what it holds, and gives it back at the end.
pub(crate) trait Player: Send + 'static {
    /// Before anything is measured.
    fn prepare(&mut self) -> impl Future<Output = Result<(), Failed>> + Send {
        async { Ok(()) }
    }

    /// Whatever has to be so before the client can take its next turn. Returns early when the run is over.
    fn ready(&mut self, _book: &Book, _stage: &Stage) -> impl Future<Output = Result<(), Failed>> + Send {
        async { Ok(()) }
    }

    /// One operation, to start at `start`.
    fn turn(&mut self, book: &Book, start: Moment) -> impl Future<Output = Result<(), Failed>> + Send;

    /// Gives back what is held; returns how many locks couldn't be.
    fn give_back(self) -> impl Future<Output = u64> + Send;
}

/// Takes turns until it is over.
pub(crate) async fn play(player: &mut impl Player, book: &Book, turns: &mut Turns) {
    while !turns.stage().over().is_cancelled() {
        let is_ready = player.ready(book, turns.stage()).await;
        let is_paced = is_ready.is_ok() && turns.is_paced();
        let played = match is_ready {
            Ok(()) => match turns.next().await {
                Some(start) => player.turn(book, start).await,
                None => return,
            },
            Err(failed) => Err(failed),
        };
        if played.is_err() && !is_paced {
            turns.stage().over().run_until_cancelled(sleep(PAUSE_AFTER_FAILURE)).await;
        }
    }
}

/// Takes an operation down, and passes on what came of it.
fn noted<T>(book: &Book, kind: Kind, start: Moment, result: Result<T, Failed>) -> Result<T, Failed> {
    book.note(kind, start, result.as_ref().map(|_| ()).map_err(|failed| failed.code));
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Pace, Plan, Workload};
    use crate::report::{KindReport, Latency};
    use crate::stage::Overload;
    use kunci_client::RuntimeClock;
    use std::num::NonZeroU32;
    use std::sync::Arc;
    use tokio_util::sync::CancellationToken;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A cluster that answers after a fixed time, and stalls at one operation.
    struct Fake {
        answers_after: Duration,
        stalls_at: Option<u64>,
        stall: Duration,
        done: u64,
    }

    impl Player for Fake {
        async fn turn(&mut self, book: &Book, start: Moment) -> Result<(), Failed> {
            let is_stall = self.stalls_at == Some(self.done);
            self.done += 1;
            sleep(if is_stall { self.stall } else { self.answers_after }).await;
            noted(book, Kind::Status, start, Ok(()))
        }

        async fn give_back(self) -> u64 {
            0
        }
    }

    struct Found {
        figures: KindReport,
        overload: Option<Overload>,
    }

    impl Found {
        fn latency(&self) -> Latency {
            self.figures.latency_us.unwrap()
        }
    }

    /// One client against a fake, for 2 s.
    async fn find(per_second: Option<u32>, warm_up: Duration, mut fake: Fake) -> Found {
        let pace = match per_second.and_then(NonZeroU32::new) {
            Some(per_second) => Pace::Open { per_second },
            None => Pace::Closed,
        };
        let plan = Plan { warm_up, duration: MS(2_000), ..Plan::new(Workload::Reads, pace) };
        let stage = Stage::begin(Arc::new(RuntimeClock::new()), &plan, CancellationToken::new());
        let book = Book::new(stage.clone()).unwrap();
        let mut turns = stage.turns();
        tokio::join!(play(&mut fake, &book, &mut turns), stage.end());
        assert_eq!(stage.counted(), MS(2_000));
        Found { figures: book.figures(2.0).remove(0), overload: stage.overload() }
    }

    fn stalling() -> Fake {
        Fake { answers_after: MS(1), stalls_at: Some(50), stall: MS(1_000), done: 0 }
    }

    fn slow() -> Fake {
        Fake { answers_after: MS(100), stalls_at: None, stall: MS(0), done: 0 }
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_loop_counts_a_stall_for_everybody_who_would_have_come_meanwhile() {
        let found = find(Some(100), MS(0), stalling()).await;
        assert_eq!(found.figures.operations, 200, "none is left out");
        let Overload { late, never_begun } = found.overload.unwrap();
        assert_eq!(never_begun, 0);
        assert!(late > 100, "100 came during the stall and more until the backlog was gone: {late}");
        assert!(found.latency().p50 > 100_000, "{:?}", found.latency());
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_loop_hides_a_stall_in_one_latency() {
        let found = find(None, MS(0), stalling()).await;
        assert!(found.latency().p99 < 10_000 && found.latency().max >= 1_000_000, "{:?}", found.latency());
        assert_eq!(found.overload, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_beyond_what_gets_done_shows_as_latency_lateness_and_operations_never_begun() {
        let found = find(Some(100), MS(0), slow()).await;
        assert_eq!(found.figures.operations, 20);
        assert_eq!(found.overload, Some(Overload { late: 19, never_begun: 180 }));
        assert!(found.latency().max > 1_800_000, "{:?}", found.latency());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_of_the_warm_up_is_counted_and_no_backlog_of_it_is_left() {
        let found = find(Some(100), MS(3_000), slow()).await;
        assert_eq!(found.figures.operations, 20);
        assert!(found.latency().min < 200_000, "{:?}", found.latency());
        assert_eq!(found.overload.unwrap().never_begun, 180);
    }
}
