//! Whether the cluster serves a program, seen by the program itself while it holds a lock.
//!
//! Owns: reads of the lock from all nodes in turn, in the program's own process, so that it stands still with it and is
//! cut off with it. Never: renews anything, nor looks at what the product's client does.

use crate::http;
use crate::network::{HTTP, Plug};
use crate::world::World;
use ::http::Method;
use kunci_client::{HeldLock, State};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// From one question to the next.
const ASK_EVERY: Duration = Duration::from_millis(150);
/// How long one answer may take.
const ANSWER_WITHIN: Duration = Duration::from_millis(300);
/// After so long without an answer it isn't served any more. Some nodes may be dead or cut off, one after the other.
const GAP_MAX: Duration = Duration::from_millis(1_200);

/// What was seen of it.
#[derive(Clone, Default)]
pub(super) struct Witness(Arc<Mutex<Served>>);

#[derive(Default)]
struct Served {
    since: Option<Instant>,
    last: Option<Instant>,
    /// For how long without a gap it had been served when the lock was lost.
    at_loss: Option<Duration>,
}

impl Witness {
    /// Begins to ask, in the calling process, and ends with the lock.
    pub(super) fn begin(world: &World, plug: &Plug, lock: &Arc<HeldLock>) -> Self {
        let witness = Self::default();
        kunci_process::spawn(witness.clone().ask(world.clone(), plug.clone(), Arc::downgrade(lock)));
        witness
    }

    /// For how long it had been served without a gap when the lock was lost.
    pub(super) fn served_for(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).at_loss.unwrap_or_default()
    }

    async fn ask(self, world: World, plug: Plug, lock: Weak<HeldLock>) {
        for turn in 0_usize.. {
            let names = world.names();
            let Some(name) = names.get(turn % names.len().max(1)) else { return };
            let Some(path) = lock.upgrade().map(|lock| lock.resource().to_string().replace('/', "%2F"))
            else {
                return;
            };
            let (address, path) = (format!("{name}:{HTTP}"), format!("/locks/{path}"));
            let call = http::call(&plug, &address, Method::GET, &path, None);
            let answer = kunci_process::timeout(ANSWER_WITHIN, call).await;
            self.note(matches!(answer, Ok(Ok(answer)) if answer.status == 200));
            match lock.upgrade().map(|lock| lock.state()) {
                Some(State::Lost) => return self.note_loss(),
                Some(_) => {}
                None => return,
            }
            kunci_process::sleep(ASK_EVERY).await;
        }
    }

    fn note(&self, is_served: bool) {
        let now = Instant::now();
        let mut served = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if served.last.is_none_or(|last| now - last > GAP_MAX) {
            served.since = None;
        }
        if is_served {
            served.since.get_or_insert(now);
            served.last = Some(now);
        }
    }

    fn note_loss(&self) {
        let mut served = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        served.at_loss = served.since.map(|since| since.elapsed());
    }
}
