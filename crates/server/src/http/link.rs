//! The kept connection to the leader, over which calls are passed on to it: HTTP/2, one for all calls.
//!
//! Owns: when it is made and given up, and what it may hold. Never: which calls go over it, or whether one is tried
//! again.

use super::HttpLimits;
use axum::body::Bytes;
use http::{HeaderName, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use kunci_process::timeout_at;
use kunci_replica::BoxedStream;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A link that is silent for this long is asked whether it lives, at both ends and also while it is idle.
pub(super) const ASK_AFTER: Duration = Duration::from_millis(250);
/// And is dead without an answer in this time: 950 ms of silence in all, within the second of the contract.
pub(super) const ALIVE_WITHIN: Duration = Duration::from_millis(700);
/// What may be on its way in one answer, unread by its client. Each call has its own window, so that a client that
/// doesn't read holds up its own answer only.
const ANSWER_WINDOW_BYTES: u32 = 16 << 10;
/// The same for a request. The leader reads requests at once.
pub(super) const REQUEST_WINDOW_BYTES: u32 = 64 << 10;
/// The largest window that HTTP/2 has.
const WINDOW_BYTES_MAX: u32 = (1 << 31) - 1;
/// How long a call that was given up is remembered, so that what is still on its way for it is known to be late.
const FORGET_AFTER: Duration = Duration::from_secs(2);

/// `Kunci-Request-Id`, on a link only: the request id that the node of the client drew for an acquire that had none,
/// so that it can tell its client even when the link breaks.
pub(super) const DRAWN_REQUEST_ID: HeaderName = HeaderName::from_static("kunci-request-id");
/// `Kunci-Client`, on a link only: address and port of the client, for the audit log.
pub(super) const CLIENT: HeaderName = HeaderName::from_static("kunci-client");
/// `Kunci-Refusal`, on a link only: the code of a refusal that is worth another try elsewhere.
pub(super) const REFUSAL: HeaderName = HeaderName::from_static("kunci-refusal");

/// A call that is passed on.
pub(super) type Call = Request<Full<Bytes>>;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    /// Nothing of it was sent.
    #[error("reach the leader: {0}")]
    NotSent(String),
    /// It was sent, and the link broke.
    #[error("hear from the leader: {0}")]
    Lost(hyper::Error),
}

/// The way to the leader, whoever that is.
pub(super) struct KeptLink {
    state: Mutex<State>,
    /// Connections that weren't made so far.
    failures: AtomicU64,
    calls_max: u32,
}

#[derive(Default)]
struct State {
    open: Option<(u64, SendRequest<Full<Bytes>>)>,
    failed: Option<Failed>,
}

/// The last connection that wasn't made.
struct Failed {
    node_id: u64,
    /// Which try it was, from 1.
    number: u64,
    why: String,
}

impl KeptLink {
    pub(super) fn new(limits: &HttpLimits) -> Self {
        let calls_max = u32::try_from(limits.connections_max).unwrap_or(u32::MAX);
        Self { state: Mutex::default(), failures: AtomicU64::new(0), calls_max }
    }

    /// Passes a call on to a member; `connect` makes a connection to it when there is none that lives, until `end` at
    /// most.
    ///
    /// Dropping the answer, or this while it waits, ends the call at the other end.
    pub(super) async fn call(
        &self,
        node_id: u64,
        call: Call,
        connect: impl Future<Output = io::Result<BoxedStream>>,
        end: Instant,
    ) -> Result<Response<Incoming>, Unanswered> {
        let connected = timeout_at(end, self.sender(node_id, connect)).await;
        let connected = connected.unwrap_or_else(|_| Err("no connection in time".to_owned()));
        let mut sender = connected.map_err(Unanswered::NotSent)?;
        sender.try_send_request(call).await.map_err(|mut error| match error.take_message() {
            Some(_) => Unanswered::NotSent(error.into_error().to_string()),
            None => Unanswered::Lost(error.into_error()),
        })
    }

    async fn sender(
        &self,
        node_id: u64,
        connect: impl Future<Output = io::Result<BoxedStream>>,
    ) -> Result<SendRequest<Full<Bytes>>, String> {
        let known = self.failures.load(Ordering::Relaxed);
        let mut state = self.state.lock().await;
        if let Some((at, sender)) = &state.open
            && *at == node_id
            && !sender.is_closed()
        {
            return Ok(sender.clone());
        }
        // Many calls find the link broken at the same time. One tries to connect for all that came until it knew.
        if let Some(failed) = &state.failed
            && failed.node_id == node_id
            && failed.number > known
        {
            return Err(failed.why.clone());
        }
        // The old one ends once its last call has its answer.
        state.open = None;
        let begun = match connect.await {
            Ok(stream) => self.begin(stream).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match begun {
            Ok(sender) => {
                state.open = Some((node_id, sender.clone()));
                Ok(sender)
            }
            Err(why) => {
                tracing::debug!(node_id, why, "can't pass calls on");
                let number = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
                state.failed = Some(Failed { node_id, number, why: why.clone() });
                Err(why)
            }
        }
    }

    async fn begin(&self, stream: BoxedStream) -> hyper::Result<SendRequest<Full<Bytes>>> {
        let all_answers = ANSWER_WINDOW_BYTES.saturating_mul(self.calls_max).clamp(1 << 20, WINDOW_BYTES_MAX);
        let calls_max = usize::try_from(self.calls_max).unwrap_or(usize::MAX);
        let (sender, connection) = Builder::new(OwnTasks)
            .timer(TokioTimer::new())
            .keep_alive_interval(ASK_AFTER)
            .keep_alive_timeout(ALIVE_WITHIN)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(ANSWER_WINDOW_BYTES)
            // No call waits because others aren't read.
            .initial_connection_window_size(all_answers)
            // Clients go away at any time, many at once: that is no attack of the leader on this node.
            .max_concurrent_reset_streams(calls_max)
            .reset_stream_duration(FORGET_AFTER)
            .max_local_error_reset_streams(None)
            .handshake(TokioIo::new(stream))
            .await?;
        kunci_process::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the link to the leader broke");
            }
        });
        Ok(sender)
    }

    /// Gives the connection up, once its last call has its answer.
    pub(super) async fn close(&self) {
        self.state.lock().await.open = None;
    }
}

/// Runs what a connection needs besides itself as tasks of this process.
#[derive(Clone, Copy)]
struct OwnTasks;

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for OwnTasks {
    fn execute(&self, task: F) {
        kunci_process::spawn(task);
    }
}

#[cfg(test)]
mod tests;
