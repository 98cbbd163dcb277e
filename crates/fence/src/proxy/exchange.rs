//! One request at the upstream, from its first byte to the last of its response.
//!
//! Owns: streaming both ways, the times, and knowing whether a request has ended for certain. Never: decides whether it may
//! begin.
//!
//! A fenced request runs in a task of its own: its client may go away, and it has an effect all the same. It has ended once
//! the upstream's response was received whole. Whatever else ends it (times, broken connections on either side) leaves open
//! what the upstream still does, so its pass is dropped without being settled.

use super::body::{Cut, Pieces};
use super::connection::{Front, refusal, too_large};
use super::head;
use super::settings::Times;
use super::traffic::Outcome;
use crate::claim::Problem;
use crate::passage::Pass;
use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as _, Incoming};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How long the next piece of a body may take once a newer request waits for this one to end.
const STALL_WHEN_SUPERSEDED: Duration = Duration::from_secs(1);
/// How long a connection to the upstream is kept without a request: less than servers do by default, so that a request
/// doesn't meet one that is being closed.
const IDLE: Duration = Duration::from_secs(4);

/// The way to the upstream.
pub(super) type Upstream = Client<HttpConnector, UpBody>;
/// A request's body on its way.
pub(super) type UpBody = UnsyncBoxBody<Bytes, Cut>;
/// A response's body on its way.
pub(super) type OutBody = UnsyncBoxBody<Bytes, Cut>;

/// Connections to the upstream, to be kept and used again.
pub(super) fn upstream(connect_within: Duration) -> Upstream {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(connect_within));
    connector.set_nodelay(true);
    // A machine that is gone ends its connections, too.
    connector.set_keepalive(Some(Duration::from_secs(10)));
    connector.set_keepalive_interval(Some(Duration::from_secs(5)));
    connector.set_keepalive_retries(Some(2));
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .build(connector)
}

/// Sends a request to the upstream and gives back its response, or what to say in its place.
pub(super) async fn run(
    front: &Arc<Front>,
    head: Parts,
    body: Incoming,
    pass: Option<Pass>,
    room: OwnedSemaphorePermit,
) -> Response<OutBody> {
    let (answer, answered) = oneshot::channel();
    let (uploaded, is_uploaded) = oneshot::channel();
    let superseded = |pass: &Option<Pass>| -> Pin<Box<dyn Future<Output = ()> + Send>> {
        match pass {
            Some(pass) => Box::pin(pass.superseded()),
            None => Box::pin(std::future::pending()),
        }
    };
    let patience = |pass: &Option<Pass>| Patience {
        superseded: superseded(pass),
        is_superseded: false,
        stall: front.settings.times.stall,
    };
    let (to_upload, to_deliver) = (patience(&pass), patience(&pass));
    let limit = front.settings.limits.body_bytes_max;
    let (body, upload) = if body.is_end_stream() {
        (Empty::new().map_err(|never| match never {}).boxed_unsync(), None)
    } else {
        let (pieces, channel) = Pieces::new();
        (channel, Some(upload(body, pieces, limit, to_upload)))
    };
    let exchange = Exchange {
        front: Arc::clone(front),
        pass,
        answer: Answering(Some(answer)),
        uploaded: is_uploaded,
        is_uploaded: false,
        patience: to_deliver,
    };
    let request = Request::from_parts(head, body);
    front.exchanges.spawn(async move {
        let _room = room;
        let uploading = async move {
            let result = match upload {
                Some(upload) => upload.await,
                None => Ok(()),
            };
            // Whoever asks no more has the response already.
            let _ = uploaded.send(result);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = uploading => {}
            () = exchange.run(request) => {}
        }
    });
    answered.await.unwrap_or_else(|_| {
        let detail = "the request's task ended without an answer";
        refusal(&broken(StatusCode::BAD_GATEWAY, "upstream_failed", "no answer", detail))
    })
}

/// A refusal of something that may have happened.
fn broken(status: StatusCode, code: &'static str, title: &'static str, detail: &str) -> Problem {
    Problem::new(status, code, title, detail).unknown()
}

/// How long the other side may take for the next piece of a body.
struct Patience {
    superseded: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_superseded: bool,
    stall: Duration,
}

impl Patience {
    /// Returns when it is over. May be dropped and called again: then it is as long as ever.
    async fn over(&mut self) {
        if !self.is_superseded {
            if timeout(self.stall, self.superseded.as_mut()).await.is_err() {
                return;
            }
            self.is_superseded = true;
        }
        sleep(STALL_WHEN_SUPERSEDED.min(self.stall)).await;
    }
}

/// Why a request's body didn't get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UploadFault {
    ClientGone,
    Stalled,
    TooLarge,
    UpstreamStalled,
}

/// Passes a request's body on, piece by piece.
async fn upload(
    mut body: Incoming,
    mut pieces: Pieces,
    limit: u64,
    mut patience: Patience,
) -> Result<(), UploadFault> {
    let mut left = limit;
    let fault = loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = patience.over() => break UploadFault::Stalled,
        };
        let frame = match frame {
            None => {
                pieces.finish();
                return Ok(());
            }
            Some(Err(_)) => break UploadFault::ClientGone,
            Some(Ok(frame)) => frame,
        };
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        match left.checked_sub(length) {
            Some(less) => left = less,
            None => break UploadFault::TooLarge,
        }
        match timeout(patience.stall, pieces.send(frame)).await {
            Ok(true) => {}
            // The upstream has answered before it read everything; or its connection broke, and the answer says so.
            Ok(false) => return Ok(()),
            Err(_) => break UploadFault::UpstreamStalled,
        }
    };
    pieces.cut("the request's body wasn't received whole");
    Err(fault)
}

impl UploadFault {
    fn problem(self, limit: u64) -> Problem {
        let title = "the request wasn't received whole";
        match self {
            Self::TooLarge => too_large(limit).unknown(),
            Self::UpstreamStalled => broken(
                StatusCode::GATEWAY_TIMEOUT,
                "upstream_timeout",
                "the upstream takes too long",
                "the upstream stopped reading the request's body",
            ),
            Self::ClientGone | Self::Stalled => broken(
                StatusCode::REQUEST_TIMEOUT,
                "too_slow",
                title,
                "the request's body didn't arrive in time",
            ),
        }
    }
}

/// Where the answer goes, once.
struct Answering(Option<oneshot::Sender<Response<OutBody>>>);

impl Answering {
    fn send(&mut self, response: Response<OutBody>) {
        if let Some(answer) = self.0.take() {
            // The client may have gone.
            let _ = answer.send(response);
        }
    }

    /// Returns once nobody waits for it.
    async fn gone(&mut self) {
        match &mut self.0 {
            Some(answer) => answer.closed().await,
            None => std::future::pending().await,
        }
    }
}

struct Exchange {
    front: Arc<Front>,
    pass: Option<Pass>,
    answer: Answering,
    uploaded: oneshot::Receiver<Result<(), UploadFault>>,
    is_uploaded: bool,
    patience: Patience,
}

impl Exchange {
    async fn run(mut self, request: Request<UpBody>) {
        let upstream = self.front.upstream.clone();
        let response = match self.head(pin!(upstream.request(request))).await {
            Some(Ok(response)) => response,
            Some(Err(problem)) => {
                self.answer.send(refusal(&problem));
                return;
            }
            None => return,
        };
        let (mut head, body) = response.into_parts();
        head::to_client(&mut head.headers);
        if body.is_end_stream() {
            self.settle();
            let empty = Empty::new().map_err(|never| match never {}).boxed_unsync();
            self.answer.send(Response::from_parts(head, empty));
            return;
        }
        let (pieces, channel) = Pieces::new();
        self.answer.send(Response::from_parts(head, channel));
        if self.download(body, pieces).await.is_err() {
            self.front.traffic.count(Outcome::Broken);
        }
    }

    /// The response's head. `None` when nobody waits for it, and nothing depends on it.
    async fn head<F>(&mut self, mut answering: Pin<&mut F>) -> Option<Result<Response<Incoming>, Problem>>
    where
        F: Future<Output = Result<Response<Incoming>, Error>>,
    {
        let Times { answer: within, .. } = self.front.settings.times;
        let mut deadline = None;
        loop {
            tokio::select! {
                answer = answering.as_mut() => return Some(match answer {
                    Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                        Err(self.fault(UPGRADED.0, UPGRADED.1))
                    }
                    Ok(response) => Ok(response),
                    Err(error) => Err(match self.uploaded.try_recv() {
                        // It broke since we have broken its body off.
                        Ok(Err(fault)) if !self.is_uploaded => self.not_uploaded(fault),
                        _ => self.unanswered(&error),
                    }),
                }),
                uploaded = &mut self.uploaded, if !self.is_uploaded => {
                    self.is_uploaded = true;
                    if let Ok(Err(fault)) = uploaded {
                        return Some(Err(self.not_uploaded(fault)));
                    }
                    deadline = Some(Instant::now() + within);
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    return Some(Err(self.fault(TIMED_OUT.0, TIMED_OUT.1)));
                }
                () = self.answer.gone(), if self.pass.is_none() => return None,
            }
        }
    }

    fn not_uploaded(&self, fault: UploadFault) -> Problem {
        self.front.traffic.count(Outcome::Broken);
        fault.problem(self.front.settings.limits.body_bytes_max)
    }

    fn fault(&self, code: &'static str, detail: &str) -> Problem {
        self.front.traffic.count(Outcome::Broken);
        let status = if code == TIMED_OUT.0 { StatusCode::GATEWAY_TIMEOUT } else { StatusCode::BAD_GATEWAY };
        broken(status, code, "the upstream gave no whole answer", detail)
    }

    fn unanswered(&mut self, error: &Error) -> Problem {
        if !error.is_connect() {
            tracing::warn!(%error, "the upstream gave no whole answer");
            return self.fault("upstream_failed", "the upstream closed the connection before it answered");
        }
        // Nothing was sent.
        self.settle();
        self.front.traffic.count(Outcome::Unreachable);
        tracing::warn!(%error, "the upstream can't be reached");
        let detail = "the upstream can't be reached; nothing was sent to it";
        let title = "the upstream can't be reached";
        Problem::new(StatusCode::BAD_GATEWAY, "upstream_unreachable", title, detail).retry_after(1_000)
    }

    /// The upstream has answered in full: this request has no effect that it doesn't have by now.
    fn settle(&mut self) {
        if let Some(pass) = self.pass.take() {
            pass.settle();
        }
    }

    /// Passes the response's body on, piece by piece. When the client doesn't take it, the rest is read all the same if the
    /// request is fenced: only its end tells that the request has ended.
    async fn download(&mut self, mut body: Incoming, pieces: Pieces) -> Result<(), ()> {
        let mut pieces = Some(pieces);
        loop {
            let frame = tokio::select! {
                frame = timeout(self.front.settings.times.stall, body.frame()) => frame,
                uploaded = &mut self.uploaded, if !self.is_uploaded => {
                    self.is_uploaded = true;
                    let Ok(Err(_)) = uploaded else { continue };
                    cut(pieces, "the request's body wasn't received whole");
                    return Err(());
                }
            };
            match frame {
                Ok(None) => {
                    self.settle();
                    pieces.into_iter().for_each(Pieces::finish);
                    return Ok(());
                }
                Ok(Some(Ok(frame))) => pieces = self.deliver(pieces, frame).await,
                Ok(Some(Err(_))) => {
                    cut(pieces, "the upstream broke off");
                    return Err(());
                }
                Err(_) => {
                    cut(pieces, "the upstream takes too long");
                    return Err(());
                }
            }
            if pieces.is_none() && self.pass.is_none() {
                return Ok(());
            }
        }
    }

    /// Hands a piece to the client, if it still takes any.
    async fn deliver(&mut self, pieces: Option<Pieces>, frame: Frame<Bytes>) -> Option<Pieces> {
        let mut pieces = pieces?;
        let is_taken = tokio::select! {
            is_taken = pieces.send(frame) => is_taken,
            () = self.patience.over() => false,
        };
        if is_taken {
            return Some(pieces);
        }
        pieces.cut("the client doesn't read the response");
        None
    }
}

const TIMED_OUT: (&str, &str) =
    ("upstream_timeout", "the upstream didn't answer in times.answer_ms_max; it may still do what was asked");
const UPGRADED: (&str, &str) =
    ("upstream_failed", "the upstream changed the protocol, which nobody asked for");

fn cut(pieces: Option<Pieces>, why: &'static str) {
    pieces.into_iter().for_each(|pieces| pieces.cut(why));
}
