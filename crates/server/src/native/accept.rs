//! Taking connections.
//!
//! Owns: how many there are, and what happens beyond that. Never: reads a line.

use super::connection;
use super::front::{Front, at};
use crate::streams::{ClientStream, Listener, end};
use crate::tcp::Accepting;
use kunci_api::native::{Answer, Outcome};
use kunci_api::{Code, Problem};
use kunci_process::timeout;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How many connections are told at a time that there are too many; the rest is only closed.
const REFUSALS_AT_A_TIME: usize = 64;
/// How long a peer has to read the last word.
const LAST_WORD_WITHIN: Duration = Duration::from_secs(1);

/// Takes connections until the door's stop, then waits for those that are open, for a bounded time.
pub(super) async fn run<L: Listener>(listener: L, front: Front) {
    let tasks = TaskTracker::new();
    let cut = CancellationToken::new();
    let refusals = Arc::new(Semaphore::new(REFUSALS_AT_A_TIME));
    let take = |stream: L::Stream| {
        if let Ok(permit) = Arc::clone(&front.connections).try_acquire_owned() {
            front.measures.opened.count();
            let (front, cut) = (front.clone(), cut.clone());
            kunci_process::spawn(tasks.track_future(async move {
                let _permit = permit;
                tokio::select! {
                    biased;
                    () = connection::serve(stream, &front) => {}
                    () = cut.cancelled() => {}
                }
            }));
            return;
        }
        front.measures.too_many.count();
        if let Ok(permit) = Arc::clone(&refusals).try_acquire_owned() {
            let line = too_many(&front);
            kunci_process::spawn(tasks.track_future(async move {
                let _permit = permit;
                // An empty socket takes this much at once.
                if stream.try_write(&line).is_ok() {
                    last_word(stream).await;
                }
            }));
        }
    };
    let mut accepting = Accepting::new(listener, "native");
    loop {
        tokio::select! {
            biased;
            () = front.stop.cancelled() => break,
            stream = accepting.next() => take(stream),
        }
    }
    accepting.left_over().into_iter().for_each(take);
    tasks.close();
    if timeout(front.limits.drain_within, tasks.wait()).await.is_err() {
        tracing::info!(open = tasks.len(), "the stop doesn't wait longer for open native connections");
        cut.cancel();
        tasks.wait().await;
    }
}

/// The answer for a connection too many, before any line was read.
fn too_many(front: &Front) -> Vec<u8> {
    let max = front.limits.connections_max;
    let detail = format!("this node has its {max} native connections open");
    let refused = front.refuse(Problem::new(Code::Overloaded, detail));
    let answer = Answer {
        subject: None,
        at: at(refused.position),
        outcome: Outcome::refused(None, refused.problem),
        tag: None,
    };
    let mut line = Vec::new();
    answer.write(&mut line);
    line
}

/// Ends a connection from this side, once its peer has read the last word or has had time to.
pub(super) async fn last_word(stream: impl ClientStream) {
    drop(timeout(LAST_WORD_WITHIN, end(&stream)).await);
}
