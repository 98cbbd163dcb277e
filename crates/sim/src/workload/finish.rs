//! When the load ends, and what was on its way then.
//!
//! Owns: the time while everything is well again, the last trial (`finish/trial.rs`), and the moment from which nothing new
//! begins. Never: stops anybody.

mod trial;

use crate::world::World;
use kunci_replica::Lead;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// After its mending the world gets so much time before everything has to be well.
const SETTLES_WITHIN: Duration = Duration::from_secs(3);
/// For so long everything has to be well before the load ends.
const WELL_FOR: Duration = Duration::from_secs(9);

/// A write that is on its way.
type Arrival = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// While nothing is at fault.
#[derive(Clone, Copy, Default)]
struct Well {
    since: Option<Instant>,
    until: Option<Instant>,
}

/// A clone is another handle to the same.
#[derive(Clone)]
pub(super) struct Finish {
    finished: CancellationToken,
    well: Arc<Mutex<Well>>,
    arrivals: mpsc::UnboundedSender<Arrival>,
}

impl Finish {
    /// Looks at the world; what is on its way runs outside of every process.
    pub(super) fn watch(world: &World) -> Self {
        let (arrivals, mut arriving) = mpsc::unbounded_channel::<Arrival>();
        tokio::spawn(async move {
            while let Some(arrival) = arriving.recv().await {
                tokio::spawn(arrival);
            }
        });
        let finish = Self { finished: CancellationToken::new(), well: Arc::default(), arrivals };
        tokio::spawn(finish.clone().look(world.clone()));
        finish
    }

    async fn look(self, world: World) {
        world.calm().cancelled().await;
        while !is_whole(&world) {
            sleep(Duration::from_millis(50)).await;
        }
        sleep(SETTLES_WITHIN).await;
        self.well().since = Some(Instant::now());
        sleep(WELL_FOR).await;
        self.well().until = Some(Instant::now());
        trial::kill_the_leader(&world).await;
        self.finished.cancel();
    }

    fn well(&self) -> MutexGuard<'_, Well> {
        self.well.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing new should begin.
    pub(super) fn is_finished(&self) -> bool {
        self.finished.is_cancelled()
    }

    /// Returns when nothing new should begin.
    pub(super) async fn finished(&self) {
        self.finished.cancelled().await;
    }

    /// Whether everything is well, or was until the leader was killed, which changes nothing for who can wait.
    pub(super) fn is_well(&self) -> bool {
        self.well().since.is_some()
    }

    /// While everything was well, in us of the world.
    pub(super) fn well_us(&self, world: &World) -> Option<Range<u64>> {
        let us = |at: Instant| u64::try_from((at - world.began()).as_micros()).unwrap_or(u64::MAX);
        let Well { since, until } = *self.well();
        Some(us(since?)..us(until?))
    }

    /// Lets something arrive that its sender has no hold on any more.
    pub(super) fn deliver(&self, arrival: impl Future<Output = ()> + Send + 'static) {
        // The receiver lives as long as the runtime.
        let _ = self.arrivals.send(Box::pin(arrival));
    }
}

/// Whether every node lives and knows a leader.
fn is_whole(world: &World) -> bool {
    world.names().iter().all(|name| {
        let life = world.with_machine(name, |machine| machine.life.clone()).flatten();
        let replica = life.filter(|life| !life.process.is_paused()).and_then(|life| life.replica());
        replica.is_some_and(|replica| !matches!(replica.lead(), Lead::Nobody { .. }))
    })
}
