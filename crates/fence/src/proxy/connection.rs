//! One connection of a client, and what is decided about each of its requests.
//!
//! Owns: protocol limits, the order of the checks. Never: compares tokens, or talks to the upstream itself.

use super::exchange::{self, OutBody, Upstream};
use super::head;
use super::rules::Decision;
use super::settings::Settings;
use super::traffic::{Outcome, Traffic};
use crate::claim::{self, Claim, Problem};
use crate::gate::AdmitError;
use crate::passage::{Pass, PassError, Passages};
use crate::report::Reporter;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a connection that has no request may still send one when the proxy stops.
const LINGER: Duration = Duration::from_millis(100);

/// What all connections share.
pub(super) struct Front {
    pub(super) settings: Settings,
    pub(super) passages: Passages,
    pub(super) traffic: Traffic,
    pub(super) reporter: Option<Reporter>,
    pub(super) upstream: Upstream,
    /// How many more the upstream may have.
    pub(super) room: Arc<Semaphore>,
    /// Requests that the upstream has; they outlive the connections that they came by.
    pub(super) exchanges: TaskTracker,
}

impl Front {
    pub(super) fn new(
        settings: Settings,
        passages: Passages,
        traffic: Traffic,
        reporter: Option<Reporter>,
    ) -> Self {
        let upstream = exchange::upstream(settings.times.connect);
        let room = Arc::new(Semaphore::new(settings.limits.requests_max));
        Self { settings, passages, traffic, reporter, upstream, room, exchanges: TaskTracker::new() }
    }
}

/// Serves a connection to its end.
pub(super) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    front: Arc<Front>,
    stopping: CancellationToken,
) {
    // Small answers at once; a socket that can't is as good as gone.
    let _ = stream.set_nodelay(true);
    let limits = front.settings.limits;
    let service = service_fn(|request: Request<Incoming>| {
        let front = Arc::clone(&front);
        async move { Ok::<_, Infallible>(answer(request, peer, &front).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(front.settings.times.head)
        .max_headers(limits.headers_max)
        .max_header_size(limits.head_bytes_max)
        .max_buf_size(limits.head_bytes_max.max(16 << 10))
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut stopping = pin!(async {
        stopping.cancelled().await;
        sleep(LINGER).await;
    });
    let mut is_stopping = false;
    loop {
        tokio::select! {
            served = connection.as_mut() => {
                if let Err(error) = served {
                    tracing::debug!(%error, %peer, "a connection broke");
                }
                return;
            }
            () = stopping.as_mut(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn answer(request: Request<Incoming>, peer: SocketAddr, front: &Arc<Front>) -> Response<OutBody> {
    match decide(&request, front).await {
        Ok(pass) => {
            let Ok(room) = Arc::clone(&front.room).try_acquire_owned() else {
                // Nothing was sent.
                pass.into_iter().for_each(Pass::settle);
                front.traffic.count(Outcome::Refused);
                return refusal(&too_many(front));
            };
            front.traffic.count(if pass.is_some() { Outcome::Fenced } else { Outcome::Open });
            let (parts, body) = request.into_parts();
            let head = head::to_upstream(parts, peer, &front.settings.upstream, pass.as_ref());
            exchange::run(front, head, body, pass, room).await
        }
        Err((outcome, problem)) => {
            front.traffic.count(outcome);
            refusal(&problem)
        }
    }
}

pub(super) fn refusal(problem: &Problem) -> Response<OutBody> {
    problem.response().map(|body| body.map_err(|never| match never {}).boxed_unsync())
}

fn too_many(front: &Front) -> Problem {
    let max = front.settings.limits.requests_max;
    let detail = format!("the service has {max} requests already, which is limits.requests_max");
    let title = "the service has too many requests";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", title, detail).retry_after(1_000)
}

/// Whether a request may go on, and with which pass.
async fn decide(request: &Request<Incoming>, front: &Front) -> Result<Option<Pass>, (Outcome, Problem)> {
    let refused = |problem| (Outcome::Refused, problem);
    head::check(request).map_err(refused)?;
    let body_bytes_max = front.settings.limits.body_bytes_max;
    if request.body().size_hint().lower() > body_bytes_max {
        return Err(refused(too_large(body_bytes_max)));
    }
    let expected =
        match front.settings.rules.decide(request.method(), request.uri().path()).map_err(refused)? {
            Decision::Open => return Ok(None),
            Decision::Fence(expected) => expected,
        };
    let claim = Claim::of(request.headers()).map_err(refused)?;
    if let Some(expected) = expected.filter(|expected| *expected != claim.resource.as_str()) {
        let detail = format!(
            "X-Kunci-Resource is {:?}, and what is written here belongs to {expected:?}: acquire that one, and send it \
             with its token",
            claim.resource.as_str()
        );
        let title = "the lock is that of another resource";
        return Err(refused(Problem::new(StatusCode::BAD_REQUEST, "other_resource", title, detail)));
    }
    match front.passages.enter(&claim.resource, claim.token).await {
        Ok(pass) => Ok(Some(pass)),
        Err(error) => {
            claim::log(&error);
            Err((outcome_of(&error, front), Problem::from(&error)))
        }
    }
}

/// Counts and reports what wasn't let through.
fn outcome_of(error: &PassError, front: &Front) -> Outcome {
    match error {
        PassError::Gate(AdmitError::Rejected(rejected)) => {
            if let Some(reporter) = &front.reporter {
                reporter.report(rejected.clone());
            }
            Outcome::Rejected
        }
        PassError::Undrained { .. } => Outcome::Undrained,
        PassError::Gate(_) => Outcome::GateFailed,
    }
}

pub(super) fn too_large(body_bytes_max: u64) -> Problem {
    let detail = format!("the body is larger than {body_bytes_max} bytes, which is limits.body_bytes_max");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the body is too large", detail)
}
