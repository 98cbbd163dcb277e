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

/// In a closed loop a client that failed waits so long: a refusal may come at once, and again, and again.
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
        let played = match player.ready(book, turns.stage()).await {
            Ok(()) => match turns.next().await {
                Some(start) => player.turn(book, start).await,
                None => return,
            },
            Err(failed) => Err(failed),
        };
        if played.is_err() && turns.has_no_rate() {
            turns.stage().over().run_until_cancelled(sleep(PAUSE_AFTER_FAILURE)).await;
        }
    }
}

/// Takes an operation down, and passes on what came of it.
fn noted<T>(book: &Book, kind: Kind, start: Moment, result: Result<T, Failed>) -> Result<T, Failed> {
    book.note(kind, start, result.as_ref().map(|_| ()).map_err(|failed| failed.code));
    result
}
