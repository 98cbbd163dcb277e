//! One client that acquires and releases names of its own without pause, to see when the cluster serves.

use crate::client::Caller;
use crate::world::World;
use kunci_oracle::{History, Op, Outcome, Told};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The prober's name in histories.
const NAME: u64 = 900;
/// A node that is silent for so long is left for the next.
const PATIENCE: Duration = Duration::from_millis(250);

/// At work until it is dropped.
pub(crate) struct Prober {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Prober {
    pub(crate) fn start(world: &World, history: &History) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (doors, history, stopping) = (world.doors(), history.clone(), Arc::clone(&stop));
        let thread = world.begin_inside(move || async move {
            let mut caller = Caller::new(NAME, &doors, &history).patient_for(PATIENCE);
            for turn in 0_u64.. {
                if stopping.load(Ordering::Relaxed) {
                    return;
                }
                probe(&mut caller, turn).await;
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

async fn probe(caller: &mut Caller, turn: u64) {
    let resource = format!("probe/{turn}");
    let request = format!("probe-{turn}");
    let acquire = Op::Acquire {
        resource: resource.clone(),
        owner: "prober".to_owned(),
        request,
        ttl_ms: 1_000,
        wait_ms: 0,
        delay_ms: 0,
    };
    if let Outcome::Answer(answer) = caller.once(&acquire).await
        && let Ok(Told::Granted { lease, .. }) = Told::read(&acquire, &answer)
    {
        caller.once(&Op::Release { resource, lease }).await;
        // Often enough to see a gap of a few milliseconds, and not a load of its own.
        tokio::time::sleep(Duration::from_millis(5)).await;
        return;
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
