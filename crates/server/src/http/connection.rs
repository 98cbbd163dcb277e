//! Serving one connection.
//!
//! Owns: its socket options, its protocol limits, and the headers that every answer has. Never: a path.

use super::door::{From, Gone};
use super::front::Front;
use super::socket::{Phase, Socket};
use crate::streams::ClientStream;
use crate::trace::TRACEPARENT;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kunci_process::sleep;
use kunci_replica::Lead;
use kunci_types::ClientAddress;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower::ServiceExt as _;

/// `Kunci-Position`: where an answer stands in the order that histories are checked against.
pub(super) const POSITION: HeaderName = HeaderName::from_static("kunci-position");
/// `Kunci-Cluster`: the cluster that answered.
pub(super) const CLUSTER: HeaderName = HeaderName::from_static("kunci-cluster");
/// `Kunci-Leader`: `host:port` of the HTTP door of the member that leads, when one is known.
pub(super) const LEADER: HeaderName = HeaderName::from_static("kunci-leader");

/// How long a connection that has no request may still send one when the node stops.
const LINGER: Duration = Duration::from_millis(100);

/// Serves a connection to its end.
pub(super) async fn serve(stream: impl ClientStream, front: Front, routes: Router) {
    if let Err(error) = stream.prepare() {
        tracing::debug!(%error, "a connection was gone before it was served");
        return;
    }
    let stream = Arc::new(stream);
    let phase = Phase::new();
    let from = From(stream.peer_address().map(ClientAddress::from));
    let gone = Gone::default();
    let service = service_fn(|request: Request<Incoming>| {
        phase.begin_request();
        let guard = Serving(Arc::clone(&phase));
        answer(request, front.clone(), routes.clone(), (from, gone.clone()), guard)
    });
    let socket = Socket::new(Arc::clone(&stream), Arc::clone(&phase), &front);
    let connection = http1::Builder::new()
        // The socket has the times, which know an idle connection from half a head.
        .header_read_timeout(None)
        .max_headers(front.limits.headers_max)
        .max_header_size(front.limits.head_bytes_max)
        .max_buf_size(front.limits.head_bytes_max.max(16 << 10))
        .serve_connection(TokioIo::new(socket), service);
    let mut connection = pin!(connection);
    let mut watching = pin!(stream.closed_by_peer());
    // A request that is on its way when the stop comes is answered, not reset.
    let mut stopping = pin!(async {
        front.stop.cancelled().await;
        sleep(LINGER).await;
    });
    let (mut is_watching, mut is_stopping) = (true, false);
    loop {
        tokio::select! {
            biased;
            served = connection.as_mut() => {
                if let Err(error) = served {
                    tracing::debug!(%error, "an HTTP connection broke");
                }
                return;
            }
            () = watching.as_mut(), if is_watching => {
                is_watching = false;
                gone.0.cancel();
            }
            () = stopping.as_mut(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    front: Front,
    routes: Router,
    (from, gone): (From, Gone),
    guard: Serving,
) -> Result<Response<Served>, Infallible> {
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(from);
    request.extensions_mut().insert(gone);
    let trace = front.traces.of_http(request.headers(), request.method(), request.uri().path());
    request.extensions_mut().insert(trace.clone());
    let Ok(mut response) = trace.follow("a request came to the HTTP door", routes.oneshot(request)).await;
    front.count_answer(response.status());
    complete(&front, &mut response);
    response.headers_mut().extend(trace.traceparent().map(|trace| (TRACEPARENT, trace)));
    if front.is_ending() {
        // So that clients are elsewhere by the time the door is closed.
        response.headers_mut().insert(http::header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| Served { body, _guard: guard }))
}

/// Adds the headers that every answer has, where the answer of another member hasn't brought them.
pub(super) fn complete(front: &Front, response: &mut Response) {
    let headers = response.headers_mut();
    if !headers.contains_key(POSITION) {
        add(headers, POSITION, front.position().to_string());
    }
    if let Some(service) = front.service.get() {
        if !headers.contains_key(CLUSTER) {
            add(headers, CLUSTER, service.cluster_id().to_string());
        }
        if !headers.contains_key(LEADER) {
            match service.lead() {
                Lead::Here => add(headers, LEADER, front.me.http.clone()),
                Lead::At { http, .. } => add(headers, LEADER, http),
                Lead::Nobody { .. } => {}
            }
        }
    }
    headers.entry(http::header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

fn add(headers: &mut HeaderMap, name: HeaderName, value: String) {
    headers.extend(HeaderValue::try_from(value).ok().map(|value| (name, value)));
}

/// Marks the connection as serving a request until it is dropped.
struct Serving(Arc<Phase>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.end_request();
    }
}

/// An answer's body; the request is over when it is dropped.
struct Served {
    body: Body,
    _guard: Serving,
}

impl HttpBody for Served {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
