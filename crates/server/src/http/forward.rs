//! To the leader: a call is answered here when this node leads, and by the member that does otherwise.
//!
//! Owns: how long a call waits for a leader, when it is tried again, and what its client is told when that can't be.
//! Never: passes on what was passed on, or repeats a call that may have taken effect.

use super::calls::PassedOn;
use super::denied::of_call;
use super::door::{Door, From, Gone};
use super::front::Front;
use super::link::{CLIENT, Call, DRAWN_REQUEST_ID, REFUSAL, Unanswered};
use super::measured::Measured;
use crate::audit::Denied;
use crate::service::{Service, draw_request_id};
use crate::trace::{TRACEPARENT, Trace, pass_on};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{self, HeaderName};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use kunci_api::{Applied, Code, Problem};
use kunci_process::{sleep_until, timeout_at};
use kunci_replica::{Lead, NoLead};
use serde::Deserialize;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::WaitForCancellationFutureOwned;

/// A hand-over or a quick election takes less than this, so nobody needs to hear of it.
const LEADERLESS_MAX: Duration = Duration::from_millis(400);
/// How long a call is tried again that took no effect.
const TRIES_WITHIN: Duration = Duration::from_secs(1);
/// From one try to the next while the leader seems to be the same.
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// What a connection's peers agree on, and no call.
const OF_CONNECTION: [HeaderName; 8] = [
    header::CONNECTION,
    header::EXPECT,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// A route's way to the leader.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) front: Front,
    pub(super) answer: Answered,
    /// Bytes of a body.
    pub(super) bytes_max: usize,
}

/// When a call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// As soon as the log has it.
    AtOnce,
    /// When others make way, or bit by bit. It ends when its client closes its side.
    WhileClientWaits,
}

/// Lets the leader answer.
pub(super) async fn to_leader(State(way): State<Way>, gone: Gone, request: Request, next: Next) -> Response {
    let (front, asked) = (way.front.clone(), Measured::begin(&request));
    let response = led(way, gone.clone(), request, next).await;
    asked.end(&front.measures, &response, gone.0.is_cancelled());
    response
}

async fn led(way: Way, gone: Gone, request: Request, next: Next) -> Response {
    let front = way.front.clone();
    let Some(door) = Door::of(&front) else { return front.refuse_without_cluster().into_response() };
    let (parts, body) = request.into_parts();
    let body = match front.read(&parts, body, way.bytes_max).await {
        Ok(body) => body,
        Err(failure) => return failure.into_response(),
    };
    if parts.extensions.get::<PassedOn>().is_some() {
        return next.run(Request::from_parts(parts, Body::from(body))).await;
    }
    let changes = door.service.lead_changes();
    let asked = Asked { door, answered: way.answer, gone, parts, body, request_id: None };
    asked.be_answered(changes, next).await
}

/// A call with its body.
struct Asked {
    door: Door,
    answered: Answered,
    gone: Gone,
    parts: Parts,
    body: Bytes,
    /// Of an acquire, once it was needed.
    request_id: Option<RequestId>,
}

/// How a try ended.
enum Tried {
    /// With the answer.
    Over(Response),
    /// It took no effect, and another try may. This is the answer if there is none.
    InVain(Response),
}

impl Asked {
    async fn be_answered(mut self, mut changes: watch::Receiver<Lead>, next: Next) -> Response {
        let end = kunci_process::now() + TRIES_WITHIN;
        loop {
            let lead = changes.borrow_and_update().clone();
            let until = if let Lead::Nobody { why, since } = lead {
                let until = (since + LEADERLESS_MAX).min(end);
                if why == NoLead::Removed || kunci_process::now() >= until {
                    return self.refuse(Service::without_leader(why));
                }
                until
            } else {
                let tried = match lead {
                    Lead::At { node_id, .. } => self.there(node_id, &mut changes, end).await,
                    Lead::Here | Lead::Nobody { .. } => self.here(next.clone()).await,
                };
                match tried {
                    Tried::Over(response) => return response,
                    Tried::InVain(response) if kunci_process::now() >= end => {
                        self.record_denied(Code::NoLeader);
                        return response;
                    }
                    Tried::InVain(_) => (kunci_process::now() + AGAIN_AFTER).min(end),
                }
            };
            // Whichever comes first: news of the leader, or time for another look.
            if let Ok(Err(_)) = timeout_at(until, changes.changed()).await {
                sleep_until(until).await;
            }
        }
    }

    async fn here(&self, next: Next) -> Tried {
        let request = Request::from_parts(self.parts.clone(), Body::from(self.body.clone()));
        let response = next.run(request).await;
        match response.extensions().get() {
            Some(Code::NoLeader) => Tried::InVain(response),
            _ => Tried::Over(response),
        }
    }

    async fn there(&mut self, node_id: u64, changes: &mut watch::Receiver<Lead>, end: Instant) -> Tried {
        self.find_request_id();
        self.door.count_passed_on();
        let (waits, is_read) = (self.answered == Answered::WhileClientWaits, self.parts.method.is_safe());
        let elsewhere = |lead: &Lead| !matches!(lead, Lead::At { node_id: at, .. } if *at == node_id);
        let connect = self.door.service.open_calls(node_id);
        let answered = tokio::select! {
            biased;
            // Nobody waits for the answer any more: the leader is told by the end of the call.
            () = self.gone.0.cancelled(), if waits => {
                return Tried::Over(self.unknown("the client closed the connection before its answer came"));
            }
            answered = pass_on(node_id, self.door.link.call(node_id, self.call(), connect, end)) => answered,
            // A leader that is mute may still have a link. What only reads needn't wait for that to break.
            _ = changes.wait_for(elsewhere), if is_read => return Tried::InVain(self.unreached()),
            () = self.door.waits_end(), if waits => {
                return Tried::Over(self.unknown(
                    "this node is stopping: ask again with the same request id, also at another node",
                ));
            }
        };
        match answered {
            Ok(answer) => self.passed_back(answer),
            Err(error) => {
                tracing::debug!(node_id, %error, "a call wasn't answered by the leader");
                if is_read || matches!(error, Unanswered::NotSent(_)) {
                    return Tried::InVain(self.unreached());
                }
                Tried::Over(self.unknown(
                    "the way to the leader broke before the answer came: ask again with the same request id",
                ))
            }
        }
    }

    /// The call as it goes to the leader.
    fn call(&self) -> Call {
        let mut call = Call::new(Full::new(self.body.clone()));
        call.method_mut().clone_from(&self.parts.method);
        let path = self.parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        // What was a path and query is one again.
        *call.uri_mut() = format!("http://leader{path}").parse().unwrap_or_default();
        let headers = call.headers_mut();
        headers.clone_from(&self.parts.headers);
        without_connection(headers);
        headers.remove(DRAWN_REQUEST_ID);
        headers.remove(CLIENT);
        if let Some(trace) = self.parts.extensions.get::<Trace>().and_then(Trace::traceparent) {
            headers.insert(TRACEPARENT, trace);
        }
        if let Some(From(Some(address))) = self.parts.extensions.get() {
            headers.extend(HeaderValue::try_from(address.to_string()).ok().map(|address| (CLIENT, address)));
        }
        if let Some(RequestId::Drawn(id)) = &self.request_id {
            headers.extend(HeaderValue::try_from(id.as_str()).ok().map(|id| (DRAWN_REQUEST_ID, id)));
        }
        call
    }

    /// The leader's answer as it goes to the client.
    fn passed_back(&self, answer: http::Response<Incoming>) -> Tried {
        let (mut parts, body) = answer.into_parts();
        let refusal = parts.headers.remove(REFUSAL);
        without_connection(&mut parts.headers);
        let body = match self.answered {
            Answered::AtOnce => Body::new(body),
            Answered::WhileClientWaits => {
                let (gone, stop) = (self.gone.0.clone(), self.door.stop.clone());
                Body::new(Passed { body, ends: [gone, stop].map(|end| Box::pin(end.cancelled_owned())) })
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = parts.status;
        *response.headers_mut() = parts.headers;
        let code = Code::ALL.iter().find(|code| refusal.as_ref().is_some_and(|text| text == code.as_str()));
        if let Some(code) = code {
            response.extensions_mut().insert(*code);
        }
        if code == Some(&Code::NoLeader) {
            return Tried::InVain(response);
        }
        Tried::Over(response)
    }

    fn is_acquire(&self) -> bool {
        self.answered == Answered::WhileClientWaits && !self.parts.method.is_safe()
    }

    /// An acquire has a request id from here on, so that its client can come back with it whatever happens.
    fn find_request_id(&mut self) {
        if self.is_acquire() && self.request_id.is_none() {
            self.request_id = RequestId::of(&self.body);
        }
    }

    fn unreached(&self) -> Response {
        let detail = "this node can't reach the leader right now; nothing was proposed";
        self.refusal(Problem::new(Code::NoLeader, detail))
    }

    fn unknown(&self, detail: &str) -> Response {
        self.refusal(Problem::new(Code::OutcomeUnknown, detail))
    }

    /// Nobody got to decide the call, so no other audit log knows that it was denied.
    fn record_denied(&self, code: Code) {
        let Some(audit) = self.door.service.audit() else { return };
        let from = self.parts.extensions.get::<From>().copied().unwrap_or_default();
        let denied = of_call(&self.parts.method, self.parts.uri.path(), &self.body);
        if let Some(denied) = denied {
            audit.denied(Denied { outcome: code.as_str(), origin: from.origin(), ..denied });
        }
    }

    fn refuse(&mut self, problem: Problem) -> Response {
        self.record_denied(problem.code);
        self.find_request_id();
        self.refusal(problem)
    }

    fn refusal(&self, problem: Problem) -> Response {
        let acquired = (self.is_acquire() && problem.applied == Applied::No).then_some(false);
        let request_id = self.request_id.as_ref().map(|id| id.as_str().to_owned());
        self.door.refuse(Problem { acquired, request_id, ..problem }).into_response()
    }
}

/// The request id of an acquire.
enum RequestId {
    /// The client's.
    Given(String),
    /// Drawn here, since the client gave none.
    Drawn(String),
}

impl RequestId {
    /// None for a body that isn't an acquire; the leader says what is wrong with it.
    fn of(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named {
            request_id: Option<String>,
        }
        let named: Named = serde_json::from_slice(body).ok()?;
        Some(match named.request_id {
            Some(id) => Self::Given(id),
            None => Self::Drawn(draw_request_id().ok()?.to_string()),
        })
    }

    fn as_str(&self) -> &str {
        let (Self::Given(id) | Self::Drawn(id)) = self;
        id
    }
}

/// Leaves out what was between two ends of one connection.
fn without_connection(headers: &mut HeaderMap) {
    let named = headers.get_all(header::CONNECTION).iter();
    let named: Vec<HeaderName> = named
        .filter_map(|names| names.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_CONNECTION) {
        headers.remove(name);
    }
}

/// An answer that comes bit by bit; it ends when its client has gone away, or this node stops.
struct Passed {
    body: Incoming,
    ends: [Pin<Box<WaitForCancellationFutureOwned>>; 2],
}

impl HttpBody for Passed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // What has come goes out first.
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        if self.ends.iter_mut().any(|end| end.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_connection_stays_on_it() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "a"),
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("content-type", "application/json"),
            ("x-end", "2"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        without_connection(&mut headers);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-type", "x-end"]);
    }

    #[test]
    fn an_acquire_without_a_request_id_gets_one_and_its_own_is_kept() {
        assert!(
            matches!(RequestId::of(br#"{"clientId":"a"}"#), Some(RequestId::Drawn(id)) if id.len() == 22)
        );
        let given = RequestId::of(br#"{"requestId":"a-1","clientId":"a"}"#);
        assert!(matches!(given, Some(RequestId::Given(id)) if id == "a-1"));
        assert!(RequestId::of(b"{").is_none() && RequestId::of(br#"{"requestId":5}"#).is_none());
    }
}
