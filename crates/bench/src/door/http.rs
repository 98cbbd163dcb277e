//! Requests over the HTTP of one node.
//!
//! Owns: kept connections, what an answer means to a bench, and repeating what passes, as `kunci-client` does. Never: a
//! request without an id or a lease in it, so that each applies once.

use super::Acquire;
use crate::book::FailureCode;
use crate::caller::{Failed, Known};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kunci_client::native::WaitFor;
use kunci_client::{Code, ResourceName, parse_lease_id};
use kunci_types::{LeaseId, Owner, RequestId};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// A node that doesn't take a connection in this time is as good as gone.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// How long an answer may take over the wait that it is asked for.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// For how long what passes, such as an election, is asked again; the same as that of `kunci-client`.
const PATIENCE: Duration = Duration::from_secs(5);
/// From one try to the next, where the node names no time or a longer one.
const PAUSE: Duration = Duration::from_millis(200);
/// The answers of a bench are far smaller.
const BODY_BYTES_MAX: usize = 64 << 10;

/// The HTTP of one node. HTTP/1.1: as many connections as there are requests under way at once.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    url: String,
    pool: Pool<HttpConnector, Full<Bytes>>,
    cluster: Option<String>,
    /// The longest wait that the policy allows.
    wait_ms_max: u64,
}

/// What came back.
struct Answer {
    status: StatusCode,
    body: Value,
}

impl Http {
    /// Connects to the node at `url`, as `http://host:port`.
    pub(crate) async fn connect(url: &str) -> Result<Self, Failed> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_WITHIN));
        connector.set_nodelay(true);
        let pool = Pool::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        let mut http = Self { url: url.to_owned(), pool, cluster: None, wait_ms_max: 0 };
        let cluster = http.get("/cluster").await?;
        http.cluster = cluster.body["clusterId"].as_str().map(str::to_owned);
        let policy = http.get("/policy").await?;
        http.wait_ms_max = policy.body["policy"]["waitMsMax"]
            .as_u64()
            .ok_or_else(|| Failed::here(format!("{url} has no policy: is this a kunci server?")))?;
        Ok(http)
    }

    pub(crate) fn cluster(&self) -> Option<String> {
        self.cluster.clone()
    }

    pub(super) async fn acquire(&self, acquire: &Acquire<'_>) -> Result<LeaseId, Failed> {
        let wait_ms = match acquire.wait {
            WaitFor::Once => 0,
            WaitFor::UpToMs(ms) => ms,
            WaitFor::AsLongAsAllowed => self.wait_ms_max,
        };
        let body = json!({
            "clientId": acquire.owner.as_str(),
            "requestId": acquire.request_id.as_str(),
            "leaseDurationMs": acquire.ttl.as_ms(),
            "waitTimeoutMs": wait_ms,
        });
        let within = ANSWER_WITHIN.saturating_add(Duration::from_millis(wait_ms));
        loop {
            let answer = self.ask(Method::POST, &path(acquire.key, "/acquire"), Some(&body), within).await?;
            match answer.lease_id() {
                Some(lease_id) => return lease_id,
                // Held open for as long as one call may be: the place in the queue is kept.
                None if answer.body["queued"] == true => {}
                None => return Err(answer.failed()),
            }
        }
    }

    pub(super) async fn cancel(
        &self,
        key: &ResourceName,
        request_id: &RequestId,
        owner: &Owner,
    ) -> Result<Option<LeaseId>, Failed> {
        let body = json!({ "clientId": owner.as_str(), "requestId": request_id.as_str() });
        let answer = self.ask(Method::POST, &path(key, "/cancel"), Some(&body), ANSWER_WITHIN).await?;
        // Without a lease: cancelled, or it had ended by itself.
        answer.lease_id().transpose()
    }

    pub(super) async fn renew(&self, key: &ResourceName, lease_id: LeaseId) -> Result<(), Failed> {
        self.with_lease(key, "/renew", lease_id).await
    }

    pub(super) async fn release(&self, key: &ResourceName, lease_id: LeaseId) -> Result<(), Failed> {
        self.with_lease(key, "/release", lease_id).await
    }

    pub(super) async fn status(&self, key: &ResourceName) -> Result<(), Failed> {
        self.get(&path(key, "")).await.map(drop)
    }

    async fn with_lease(&self, key: &ResourceName, what: &str, lease_id: LeaseId) -> Result<(), Failed> {
        let body = json!({ "leaseId": kunci_client::lease_id_text(&lease_id) });
        self.ask(Method::POST, &path(key, what), Some(&body), ANSWER_WITHIN).await?.ok().map(drop)
    }

    async fn get(&self, path: &str) -> Result<Answer, Failed> {
        self.ask(Method::GET, path, None, ANSWER_WITHIN).await?.ok()
    }

    /// Asks until the node decides, or for as long as patience lasts.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        within: Duration,
    ) -> Result<Answer, Failed> {
        let began = Instant::now();
        // What one try left open stays so, whatever the next one says.
        let mut may_have_happened = false;
        loop {
            let failed = match self.once(&method, path, body, within).await {
                Ok(answer) if answer.status != StatusCode::SERVICE_UNAVAILABLE => return Ok(answer),
                Ok(answer) => answer.failed(),
                Err(failed) => failed,
            };
            may_have_happened |= failed.may_have_happened();
            if began.elapsed() + PAUSE >= PATIENCE {
                return Err(if may_have_happened { failed.unknown() } else { failed });
            }
            sleep(PAUSE).await;
        }
    }

    async fn once(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
        within: Duration,
    ) -> Result<Answer, Failed> {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.body(Full::new(Bytes::from(body.map(Value::to_string).unwrap_or_default())));
        let request = request.map_err(|error| Failed::here(error.to_string()))?;
        let exchange = async {
            let response = self.pool.request(request).await.map_err(|error| {
                let known = if error.is_connect() { Known::NotApplied } else { Known::Nothing };
                Failed { code: "unreachable", known, detail: format!("{}: {error}", self.url) }
            })?;
            let status = response.status();
            let read = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
            let body = read.map_err(|error| no_answer(format!("{}: {error}", self.url)))?.to_bytes();
            // A refusal without a body of ours still refuses.
            Ok(Answer { status, body: serde_json::from_slice(&body).unwrap_or_default() })
        };
        timeout(within, exchange)
            .await
            .unwrap_or_else(|_| Err(no_answer(format!("{}: no answer within {within:?}", self.url))))
    }
}

impl Answer {
    fn ok(self) -> Result<Self, Failed> {
        if self.status.is_success() { Ok(self) } else { Err(self.failed()) }
    }

    /// The lease, if there is one in the answer.
    fn lease_id(&self) -> Option<Result<LeaseId, Failed>> {
        let text = self.body["leaseId"].as_str().filter(|_| self.status.is_success())?;
        Some(parse_lease_id(text).map_err(|error| Failed::here(error.to_string())))
    }

    /// A refusal, or an answer to something else.
    fn failed(&self) -> Failed {
        let text = |name: &str| self.body[name].as_str().unwrap_or_default();
        let known = match text("applied") {
            "unknown" => Known::Nothing,
            _ if self.status == StatusCode::SERVICE_UNAVAILABLE => Known::NotApplied,
            _ => Known::Decided,
        };
        let detail = format!("{} {}: {}", self.status, text("code"), text("detail"));
        Failed { code: code_of(text("code")), known, detail }
    }
}

fn no_answer(detail: String) -> Failed {
    Failed { code: "unreachable", known: Known::Nothing, detail }
}

fn code_of(word: &str) -> FailureCode {
    // A later version of the server may have codes that this one doesn't know.
    Code::ALL.iter().map(|code| code.as_str()).find(|code| *code == word).unwrap_or("unknown_code")
}

/// Names of a bench have no character that a path can't have but their `/`.
fn path(key: &ResourceName, rest: &str) -> String {
    format!("/locks/{}{rest}", key.as_str().replace('/', "%2F"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: Value) -> Answer {
        Answer { status: StatusCode::from_u16(status).unwrap(), body }
    }

    #[test]
    fn a_refusal_is_counted_by_its_code_and_what_is_not_decided_is_asked_again() {
        let held = answer(409, json!({ "code": "held", "applied": "no" })).failed();
        assert_eq!((held.code, held.is_undecided()), ("held", false));
        let no_leader = answer(503, json!({ "code": "no_leader", "applied": "no" })).failed();
        assert!(no_leader.is_undecided() && !no_leader.may_have_happened());
        let unknown = answer(503, json!({ "code": "outcome_unknown", "applied": "unknown" })).failed();
        assert!(unknown.may_have_happened());
        assert_eq!(answer(418, Value::Null).failed().code, "unknown_code");
    }

    #[test]
    fn a_name_is_one_segment_of_the_path() {
        let key = ResourceName::parse("bench/0a/7").unwrap();
        assert_eq!(path(&key, "/acquire"), "/locks/bench%2F0a%2F7/acquire");
    }
}
