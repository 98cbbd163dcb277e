//! Where connections wait until their handshake is over.
//!
//! Owns: taking connections, how many shake hands at a time and which gives way, and that running out of descriptors
//! neither spins nor parks the door. Never: reads a byte.

use super::reception::Reception;
use super::said::Said;
use crate::transport::links::{Arrival, Doorway};
use kunci_process::sleep_until;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::Instant;

/// The most handshakes at a time.
pub(super) const SHAKING_MAX: usize = 32;
/// When all are in use: one that hasn't said a word for so long gives its place to the next arrival. A member speaks
/// at once, so that a flood of silent strangers is through the lobby in far less than a member waits.
const SILENT_MAX: Duration = Duration::from_millis(50);
/// And one that did say something, after so long.
const SLOW_MAX: Duration = Duration::from_millis(250);
/// From one failed accept to the next try: descriptors come back as connections end.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Takes connections for good. Dropping this ends those whose handshake isn't over.
pub(super) async fn run(doorway: &mut dyn Doorway, reception: Arc<Reception>) -> Infallible {
    let mut lobby = Lobby { reception, tasks: JoinSet::new(), slots: Vec::new() };
    let mut again_at = kunci_process::now();
    loop {
        let gives_way_at = lobby.gives_way_at();
        tokio::select! {
            biased;
            Some(ended) = lobby.tasks.join_next_with_id() => lobby.leave(ended),
            () = sleep_until(gives_way_at.unwrap_or(again_at)), if gives_way_at.is_some() => lobby.make_room(),
            accepted = accept(doorway, again_at), if lobby.has_room() => match accepted {
                Ok(arrival) => lobby.enter(arrival),
                Err(error) => {
                    lobby.reception.said.say("accept", &Said::NOBODY, &error);
                    if !is_of_one_peer(&error) {
                        again_at = kunci_process::now() + AGAIN_AFTER;
                    }
                }
            },
        }
    }
}

async fn accept(doorway: &mut dyn Doorway, not_before: Instant) -> io::Result<Arrival> {
    sleep_until(not_before).await;
    doorway.accept().await
}

/// The handshakes that go on.
struct Lobby {
    reception: Arc<Reception>,
    tasks: JoinSet<()>,
    /// One for each task.
    slots: Vec<Slot>,
}

struct Slot {
    task: Id,
    abort: AbortHandle,
    from: String,
    since: Instant,
    has_spoken: Arc<AtomicBool>,
    is_leaving: bool,
}

impl Slot {
    fn gives_way_at(&self) -> Instant {
        self.since + if self.has_spoken.load(Ordering::Relaxed) { SLOW_MAX } else { SILENT_MAX }
    }
}

impl Lobby {
    fn enter(&mut self, arrival: Arrival) {
        let (from, has_spoken) = (arrival.from.clone(), Arc::new(AtomicBool::new(false)));
        let task = Arc::clone(&self.reception).receive(arrival, Arc::clone(&has_spoken));
        let abort = kunci_process::spawn_into(&mut self.tasks, task);
        self.slots.push(Slot {
            task: abort.id(),
            abort,
            from,
            since: kunci_process::now(),
            has_spoken,
            is_leaving: false,
        });
    }

    fn leave(&mut self, ended: Result<(Id, ()), JoinError>) {
        let task = match ended {
            Ok((task, ())) => task,
            Err(error) => {
                if error.is_panic() {
                    tracing::error!(%error, "a handshake with another node failed by a fault in this program");
                }
                error.id()
            }
        };
        self.slots.retain(|slot| slot.task != task);
    }

    fn has_room(&self) -> bool {
        self.slots.len() < SHAKING_MAX
    }

    /// When the next one gives way, if one must.
    fn gives_way_at(&self) -> Option<Instant> {
        if self.has_room() || self.slots.iter().any(|slot| slot.is_leaving) {
            return None;
        }
        self.slots.iter().map(Slot::gives_way_at).min()
    }

    /// Ends the handshake that has used its time up the longest ago.
    fn make_room(&mut self) {
        let Some(slot) = self.slots.iter_mut().min_by_key(|slot| slot.gives_way_at()) else {
            return;
        };
        // It may have spoken since the time was set.
        if slot.gives_way_at() <= kunci_process::now() {
            slot.abort.abort();
            slot.is_leaving = true;
            let why = format_args!("it gives way to others: {SHAKING_MAX} connections are shaking hands");
            self.reception.said.say("gives_way", &slot.from, &why);
        }
    }
}

/// Whether only the connection that was about to be taken is lost.
fn is_of_one_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}
