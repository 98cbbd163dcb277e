//! Calls that other members pass on to this one, on connections that they keep.
//!
//! Owns: serving them by the same routes as this node's own clients, and that they end with their link. Never: passes
//! one on again; a call is marked by the link that it came on, and by nothing that a client could send.

use super::connection::complete;
use super::door::From;
use super::front::Front;
use super::link::{ALIVE_WITHIN, ASK_AFTER, CLIENT, DRAWN_REQUEST_ID, REFUSAL, REQUEST_WINDOW_BYTES};
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kunci_api::Code;
use kunci_replica::{BoxedStream, CallsFrom};
use kunci_types::{ClientAddress, RequestId};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Every member keeps one; a few more are there while one is given up and another made.
const LINKS_MAX: usize = 64;
/// HTTP/2 counts 32 bytes for each header on top of its text, and carries the request line as headers too.
const HEAD_BYTES_MORE: usize = 4 << 10;

/// This call was passed on by another member: it is answered here, whatever the answer is.
#[derive(Clone, Debug)]
pub(super) struct PassedOn {
    /// The request id that the other member drew, for an acquire without one.
    drawn: Option<RequestId>,
}

impl PassedOn {
    /// The request id that the other member drew, for an acquire without one.
    pub(super) fn request_id(&self) -> Option<RequestId> {
        self.drawn.clone()
    }
}

/// Serves the links that other members make until the door's stop, then waits for their last calls.
pub(super) async fn run(front: Front, routes: Router, cut: CancellationToken) {
    let service = tokio::select! {
        biased;
        service = front.service.wait() => service,
        () = front.stop.cancelled() => return,
    };
    let Some(mut arrivals) = service.take_calls() else {
        tracing::error!("calls that other members pass on are served elsewhere already");
        return;
    };
    let mut links = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = front.stop.cancelled() => break,
            // First what makes room.
            Some(_) = links.join_next() => {}
            arrived = arrivals.recv() => match arrived {
                Some(CallsFrom { node_id, .. }) if links.len() >= LINKS_MAX => {
                    tracing::warn!(node_id, "too many links for calls: this one is closed");
                }
                Some(CallsFrom { node_id, stream }) => {
                    let (front, routes) = (front.clone(), routes.clone());
                    kunci_process::spawn_into(&mut links, async move {
                        serve(stream, front, routes).await;
                        tracing::debug!(node_id, "a link for calls ended");
                    });
                }
                None => break,
            },
        }
    }
    tokio::select! {
        biased;
        () = async { while links.join_next().await.is_some() {} } => {}
        () = cut.cancelled() => {}
    }
}

/// Serves one link to its end.
pub(super) async fn serve(stream: BoxedStream, front: Front, routes: Router) {
    let ended = CancellationToken::new();
    let _guard = ended.clone().drop_guard();
    let service = service_fn(|request| answer(request, front.clone(), routes.clone()));
    let limits = &front.limits;
    let calls_max = limits.connections_max;
    let head_bytes_max = limits.head_bytes_max.saturating_add(HEAD_BYTES_MORE);
    let connection = Builder::new(UntilEnded(ended))
        .timer(TokioTimer::new())
        .keep_alive_interval(ASK_AFTER)
        .keep_alive_timeout(ALIVE_WITHIN)
        .max_concurrent_streams(u32::try_from(calls_max).unwrap_or(u32::MAX))
        .max_header_list_size(u32::try_from(head_bytes_max).unwrap_or(u32::MAX))
        .initial_stream_window_size(REQUEST_WINDOW_BYTES)
        // The other end is a member: its clients going away, many at once, is no attack.
        .max_pending_accept_reset_streams(calls_max)
        .max_local_error_reset_streams(None)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut is_stopping = false;
    loop {
        tokio::select! {
            biased;
            served = connection.as_mut() => {
                if let Err(error) = served {
                    tracing::debug!(%error, "a link for calls broke");
                }
                return;
            }
            () = front.stop.cancelled(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn answer(request: Request<Incoming>, front: Front, routes: Router) -> Result<Response, Infallible> {
    let mut request = request.map(Body::new);
    let drawn = request.headers_mut().remove(DRAWN_REQUEST_ID);
    let drawn = drawn.and_then(|drawn| RequestId::parse(drawn.to_str().ok()?).ok());
    let client = request.headers_mut().remove(CLIENT);
    let client: Option<SocketAddr> = client.and_then(|client| client.to_str().ok()?.parse().ok());
    request.extensions_mut().insert(From(client.map(ClientAddress::from)));
    request.extensions_mut().insert(PassedOn { drawn });
    // The other member's trace, in its node's words and in this one's.
    let trace = front.traces.of_http(request.headers(), request.method(), request.uri().path());
    let passed = trace.follow("a request was passed on to this node, which leads", routes.oneshot(request));
    let Ok(mut response) = passed.await;
    if let Some(code) = response.extensions().get::<Code>().copied() {
        response.headers_mut().insert(REFUSAL, HeaderValue::from_static(code.as_str()));
    }
    complete(&front, &mut response);
    Ok(response)
}

/// Runs the calls of one link, and none of them for longer than the link.
#[derive(Clone)]
struct UntilEnded(CancellationToken);

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for UntilEnded {
    fn execute(&self, call: F) {
        let ended = self.0.clone();
        kunci_process::spawn(async move {
            tokio::select! {
                biased;
                () = ended.cancelled() => {}
                _ = call => {}
            }
        });
    }
}
