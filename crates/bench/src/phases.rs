//! All players of a run, phase by phase.
//!
//! Owns: the order of the phases, and what is told each second. Never: what a player does.

use crate::bench::BenchError;
use crate::book::Book;
use crate::caller::Common;
use crate::plan::Plan;
use crate::player::{Player, play};
use crate::progress::{Phase, Progress};
use crate::stage::Stage;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Hears once a second how it goes.
pub(crate) type Tell<'a> = &'a mut (dyn FnMut(&Progress) + Send);

const EVERY: Duration = Duration::from_secs(1);

/// What it takes to run players.
pub(crate) struct Phases<'a> {
    pub(crate) plan: Plan,
    pub(crate) common: Arc<Common>,
    pub(crate) tell: Tell<'a>,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) stage: Arc<Stage>,
    pub(crate) book: Arc<Book>,
    pub(crate) left_behind: u64,
}

impl Phases<'_> {
    /// Prepares, plays and gives back.
    pub(crate) async fn run<P: Player>(&mut self, players: Vec<P>) -> Result<Played, BenchError> {
        let mut preparing = JoinSet::new();
        for mut player in players {
            preparing.spawn(async move {
                let prepared = player.prepare().await;
                (player, prepared)
            });
        }
        let prepared = self.all(preparing, |elapsed, _| quiet(Phase::Preparing, elapsed)).await;
        let (players, prepared): (Vec<P>, Vec<_>) = prepared.into_iter().unzip();
        if let Some(failed) = prepared.into_iter().find_map(Result::err) {
            self.give_back(players).await;
            return Err(BenchError::Prepare(failed.detail));
        }
        let stage = Stage::begin(self.common.clock.clone(), &self.plan, self.common.stop.clone());
        let book = Book::new(stage.clone()).map_err(|error| BenchError::Begin(error.to_string()))?;
        let book = Arc::new(book);
        let players = self.measure(players, &stage, &book).await;
        let left_behind = self.give_back(players).await;
        Ok(Played { stage, book, left_behind })
    }

    async fn measure<P: Player>(&mut self, players: Vec<P>, stage: &Arc<Stage>, book: &Arc<Book>) -> Vec<P> {
        let mut playing = JoinSet::new();
        for mut player in players {
            let (book, mut turns) = (book.clone(), stage.turns());
            playing.spawn(async move {
                play(&mut player, &book, &mut turns).await;
                player
            });
        }
        let progress = |_, since_last| progress(stage, book, since_last);
        tokio::join!(self.all(playing, progress), stage.end()).0
    }

    /// Returns how many locks couldn't be given back.
    async fn give_back<P: Player>(&mut self, players: Vec<P>) -> u64 {
        let giving_back: JoinSet<u64> = players.into_iter().map(Player::give_back).collect();
        self.all(giving_back, |elapsed, _| quiet(Phase::GivingBack, elapsed)).await.into_iter().sum()
    }

    /// Waits for all tasks, and tells meanwhile how it goes. `progress` takes how long it has gone on, and the time since
    /// it was asked last.
    async fn all<T: 'static>(
        &mut self,
        mut tasks: JoinSet<T>,
        progress: impl Fn(Duration, Duration) -> Progress,
    ) -> Vec<T> {
        let began_at = Instant::now();
        let mut last_told_at = began_at;
        let mut ticks = interval_at(began_at + EVERY, EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut done = Vec::with_capacity(tasks.len());
        loop {
            tokio::select! {
                biased;
                now = ticks.tick() => {
                    (self.tell)(&progress(now.duration_since(began_at), now.duration_since(last_told_at)));
                    last_told_at = now;
                }
                task = tasks.join_next() => match task {
                    Some(Ok(value)) => done.push(value),
                    // Nobody cancels one, so it has a bug, and so has this program.
                    Some(Err(error)) => if let Ok(panic) = error.try_into_panic() {
                        std::panic::resume_unwind(panic);
                    },
                    None => return done,
                },
            }
        }
    }
}

/// Nothing is measured.
fn quiet(phase: Phase, elapsed: Duration) -> Progress {
    let (p50, p99) = (Duration::ZERO, Duration::ZERO);
    Progress { phase, elapsed, per_second: 0.0, errors: 0, p50, p99, late: None }
}

fn progress(stage: &Stage, book: &Book, since_last: Duration) -> Progress {
    let (now, lately) = (stage.now(), book.lately());
    let (phase, since) = if let Some(ended_at) = stage.ended_at() {
        (Phase::Ending, ended_at)
    } else if now < stage.counted_from() {
        (Phase::WarmingUp, stage.began_at())
    } else {
        (Phase::Measuring, stage.counted_from())
    };
    Progress {
        phase,
        elapsed: now.since(since),
        // Fewer than 2^53 operations: exact.
        per_second: lately.operations as f64 / since_last.as_secs_f64().max(0.001),
        errors: lately.errors,
        p50: lately.p50,
        p99: lately.p99,
        late: stage.overload().map(|overload| overload.late),
    }
}
