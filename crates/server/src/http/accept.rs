//! Taking connections.
//!
//! Owns: how many there are, and what happens beyond that. Never: looks at a request.

use super::front::Front;
use super::routes::router;
use super::{calls, connection};
use crate::streams::{ClientStream, Listener, end};
use crate::tcp::Accepting;
use kunci_api::{Code, Problem};
use kunci_process::timeout;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How many connections are told at a time that there are too many; the rest is only closed.
const REFUSALS_AT_A_TIME: usize = 64;
/// How long a refused peer has to read why.
const REFUSAL_WITHIN: Duration = Duration::from_secs(1);

/// Takes connections until the door's stop, then waits for those that are open, for a bounded time.
pub(super) async fn run<L: Listener>(listener: L, front: Front) {
    let tasks = TaskTracker::new();
    let cut = CancellationToken::new();
    let routes = router(front.clone());
    kunci_process::spawn(tasks.track_future(calls::run(front.clone(), routes.clone(), cut.clone())));
    let refusals = Arc::new(Semaphore::new(REFUSALS_AT_A_TIME));
    let take = |stream: L::Stream| {
        if let Ok(permit) = Arc::clone(&front.connections).try_acquire_owned() {
            front.measures.opened.count();
            let (served, cut) = (connection::serve(stream, front.clone(), routes.clone()), cut.clone());
            kunci_process::spawn(tasks.track_future(async move {
                let _permit = permit;
                tokio::select! {
                    biased;
                    () = served => {}
                    () = cut.cancelled() => {}
                }
            }));
            return;
        }
        front.measures.too_many.count();
        if let Ok(permit) = Arc::clone(&refusals).try_acquire_owned() {
            let text = too_many(&front);
            kunci_process::spawn(tasks.track_future(async move {
                let _permit = permit;
                drop(timeout(REFUSAL_WITHIN, refuse(stream, &text)).await);
            }));
        }
    };
    let mut accepting = Accepting::new(listener, "HTTP");
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
        tracing::info!(open = tasks.len(), "the stop doesn't wait longer for open HTTP connections");
        cut.cancel();
        tasks.wait().await;
    }
    front.link.close().await;
}

/// The answer for a connection too many, before any request was read.
fn too_many(front: &Front) -> Vec<u8> {
    let max = front.limits.connections_max;
    let detail = format!("this node has its {max} connections open");
    let refused = front.refuse(Problem::new(Code::Overloaded, detail)).into_refused();
    let body = serde_json::to_string(&refused.problem).unwrap_or_default();
    let cluster = front.service.get().map(|service| format!("kunci-cluster: {}\r\n", service.cluster_id()));
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         content-length: {}\r\nretry-after: 1\r\nkunci-position: {}\r\n{}connection: close\r\n\r\n{body}",
        body.len(),
        refused.position,
        cluster.unwrap_or_default(),
    )
    .into_bytes()
}

/// Says it, and reads what the peer sends until it has read it: closing over unread bytes would take the answer
/// away from it.
async fn refuse(stream: impl ClientStream, text: &[u8]) -> io::Result<()> {
    // An empty socket takes this much at once.
    stream.try_write(text)?;
    end(&stream).await
}
