//! From a call's outcome to a response.
//!
//! Owns: the form of every answer, and the moment from which a grant counts as handed out. Never: the outcome.

use super::connection::POSITION;
use crate::service::{OpenCall, Outcome, Refused, Stamped};
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kunci_replica::Position;
use serde::Serialize;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// How a handler ends.
pub(super) type Answer = Result<Response, Failure>;

/// A refusal on its way out.
#[derive(Debug)]
pub(super) struct Failure(Box<Refused>);

impl Failure {
    pub(super) fn into_refused(self) -> Refused {
        *self.0
    }
}

impl From<Box<Refused>> for Failure {
    fn from(refused: Box<Refused>) -> Self {
        Self(refused)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Refused { problem, position } = *self.0;
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json(status, position, &problem).into_response();
        response.headers_mut().insert(CONTENT_TYPE, PROBLEM);
        response.extensions_mut().insert(problem.code);
        if let Some(ms) = problem.retry_after_ms {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000)));
        }
        response
    }
}

/// A call's outcome as a response with this status when it went well.
pub(super) fn answer<T: Serialize>(status: StatusCode, outcome: Outcome<T>) -> Answer {
    let Stamped { body, position } = outcome?;
    Ok(json(status, position, &body).into_response())
}

/// A call's outcome as a response: 200 when it went well.
pub(super) fn ok<T: Serialize>(outcome: Outcome<T>) -> Answer {
    answer(StatusCode::OK, outcome)
}

/// A grant: handed out, and so never taken back, once its bytes are taken for sending. When the peer is gone before
/// that, the call is dropped with the response.
pub(super) fn grant<T: Serialize>(granted: Stamped<T>, call: OpenCall) -> Response {
    let Stamped { body, position } = granted;
    let (status, headers, bytes) = json(StatusCode::OK, position, &body);
    (status, headers, Body::new(Handing(Some((bytes, call))))).into_response()
}

fn json<T: Serialize>(status: StatusCode, position: Position, body: &T) -> (StatusCode, HeaderMap, Bytes) {
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, JSON)]);
    headers.extend(HeaderValue::try_from(position.to_string()).ok().map(|at| (POSITION, at)));
    match serde_json::to_vec(body) {
        Ok(bytes) => (status, headers, bytes.into()),
        Err(error) => {
            // Our bodies are texts, numbers and truths: there is nothing in them that JSON can't say.
            tracing::error!(%error, "an answer can't be written as JSON");
            (StatusCode::INTERNAL_SERVER_ERROR, headers, Bytes::new())
        }
    }
}

struct Handing(Option<(Bytes, OpenCall)>);

impl HttpBody for Handing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|(bytes, call)| {
            call.delivered();
            Ok(Frame::data(bytes))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |(bytes, _)| bytes.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{AcquireAnswer, Service};
    use http_body_util::BodyExt as _;
    use kunci_api::{parse, resource};
    use kunci_replica::{Member, PeerDoor, PeerSecurity, Replica, ReplicaConfig};
    use std::time::Duration;
    use tokio::time::sleep;

    async fn granted(service: &Service, name: &str) -> Response {
        let asked = parse::<kunci_api::AcquireRequest>(br#"{"clientId":"a"}"#).unwrap().read().unwrap();
        let mut call = service
            .acquire(resource(name).unwrap(), asked, None, kunci_types::Origin::UNKNOWN)
            .await
            .unwrap();
        let Stamped { body, position } = call.answer(Duration::from_secs(5)).await.unwrap();
        let AcquireAnswer::Granted(body) = body else { panic!("not granted") };
        grant(Stamped { body, position }, call)
    }

    /// Section 3: a grant is never taken back once its answer was handed out, and abandoned after the waiter grace
    /// when it was not.
    #[tokio::test]
    async fn a_grant_counts_as_handed_out_from_the_moment_its_bytes_are_taken() {
        let data = tempfile::tempdir().unwrap();
        let peers = PeerDoor::bind(([127, 0, 0, 1], 0).into(), PeerSecurity::Plain).await.unwrap();
        let config = ReplicaConfig::new(data.path(), Member::default());
        let replica = Replica::form(config, peers, None).await.unwrap();
        assert!(replica.serving(Duration::from_secs(5)).await);
        let service = Service::new(replica.clone());
        let change = parse(br#"{"replaces":0,"policy":{"waiterGraceMs":200}}"#).unwrap();
        service.change_policy(&change, kunci_types::Origin::UNKNOWN).await.unwrap();

        let taken = granted(&service, "taken").await;
        let bytes = taken.into_body().collect().await.unwrap().to_bytes();
        assert!(bytes.starts_with(br#"{"acquired":true"#));
        drop(granted(&service, "dropped").await);

        for _ in 0..200 {
            if !service.status(resource("dropped").unwrap()).await.unwrap().body.status.held {
                break;
            }
            sleep(Duration::from_millis(25)).await;
        }
        let history = service.history(resource("dropped").unwrap()).await.unwrap().body.events;
        assert_eq!(history.last().unwrap().kind, "abandoned");
        assert!(service.status(resource("taken").unwrap()).await.unwrap().body.status.held);
        replica.stop().await;
    }
}
