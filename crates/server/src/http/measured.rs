//! What was asked for and what became of it, in the words of the metrics.

use super::calls::PassedOn;
use crate::metrics::{DoorMeasures, Op, Outcome};
use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use http::{Method, StatusCode};
use kunci_api::Code;
use tokio::time::Instant;

/// A request that is being served. What another member passes on counts there.
pub(super) struct Measured {
    op: Option<Op>,
    began: Instant,
}

impl Measured {
    pub(super) fn begin(request: &Request) -> Self {
        let path = request.extensions().get().map_or("", MatchedPath::as_str);
        let is_own = request.extensions().get::<PassedOn>().is_none();
        let op = op(request.method(), path).filter(|_| is_own);
        Self { op, began: kunci_process::now() }
    }

    /// `is_gone`: nobody waits for the response any more.
    pub(super) fn end(self, measures: &DoorMeasures, response: &Response, is_gone: bool) {
        let Some(op) = self.op else { return };
        let outcome = match outcome(op, response) {
            Outcome::Unknown if op == Op::Acquire && is_gone => Outcome::Gone,
            outcome => outcome,
        };
        measures.requests.record(op, outcome, kunci_process::now().saturating_duration_since(self.began));
    }
}

fn op(method: &Method, path: &str) -> Option<Op> {
    match path {
        "/locks/{resource}/acquire" => Some(Op::Acquire),
        "/locks/{resource}/renew" => Some(Op::Renew),
        "/leases/renew" => Some(Op::RenewMany),
        "/locks/{resource}/release" => Some(Op::Release),
        "/locks/{resource}/cancel" => Some(Op::Cancel),
        "/locks/{resource}/force-release" => Some(Op::ForceRelease),
        "/locks/{resource}" if method == Method::DELETE => Some(Op::Release),
        // It lasts for as long as its reader wants.
        "/events" => None,
        _ => method.is_safe().then_some(Op::Read),
    }
}

fn outcome(op: Op, response: &Response) -> Outcome {
    match response.status() {
        StatusCode::ACCEPTED if op == Op::Acquire => Outcome::Queued,
        status if status.is_success() && op == Op::Acquire => Outcome::Granted,
        status if status.is_success() => Outcome::Done,
        _ => response.extensions().get().map_or(Outcome::Rejected, |code: &Code| Outcome::refused(*code)),
    }
}
