//! One server over HTTP.
//!
//! Owns: connections, one request and its answer, and whether an unanswered request can have been applied.
//! Never: repeats a request; see `patience`.

use crate::answer::Answer;
use crate::exit::Failure;
use crate::url::ServerUrl;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client as Pool, Error as PoolError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::Value;
use std::error::Error as StdError;
use std::time::Duration;
use tokio::time::timeout;

/// A node that doesn't take a connection in this time is as good as gone.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// The largest page of a list is far below this.
const BODY_BYTES_MAX: usize = 64 << 20;

/// Talks to one server; keeps its connection open between requests.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    url: ServerUrl,
    pool: Pool<HttpConnector, Full<Bytes>>,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The method.
    pub(crate) method: Method,
    /// Path and query, encoded.
    pub(crate) path: String,
    /// The JSON body, if any.
    pub(crate) body: Option<Value>,
    /// How long to wait for the answer.
    pub(crate) answer_within: Duration,
}

impl Call {
    /// A read: answered at once, or not at all.
    pub(crate) fn get(path: String) -> Self {
        Self { method: Method::GET, path, body: None, answer_within: Duration::from_secs(5) }
    }

    /// A change that is answered as soon as it is committed.
    pub(crate) fn post(path: String, body: Value) -> Self {
        Self { method: Method::POST, path, body: Some(body), answer_within: Duration::from_secs(5) }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// No connection: the request was never sent.
    #[error("no connection to {url}: {cause}")]
    NotSent {
        /// The server.
        url: String,
        /// What went wrong.
        cause: String,
    },
    /// Sent, and then nothing: it may have been applied.
    #[error("no answer from {url}: {cause}")]
    NoAnswer {
        /// The server.
        url: String,
        /// What went wrong.
        cause: String,
    },
}

impl Client {
    /// Makes a client for the server that `--url` names; connects when it is first used.
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        Self::named("--url", url)
    }

    /// Makes a client for the server that this argument names.
    pub(crate) fn named(argument: &str, url: &str) -> Result<Self, Failure> {
        let url = ServerUrl::parse(url).map_err(|text| Failure::usage(format!("{argument}: {text}")))?;
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_MAX));
        connector.set_nodelay(true);
        let pool = Pool::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        Ok(Self { url, pool })
    }

    /// The server's address.
    pub(crate) fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Sends a request once and reads its answer.
    pub(crate) async fn call(&self, call: &Call) -> Result<Answer, CallError> {
        let exchange = async {
            let response = self.send(call, None).await?;
            self.read(response).await
        };
        match timeout(call.answer_within, exchange).await {
            Ok(answered) => answered,
            Err(_) => Err(self.no_answer(format!("none within {:?}", call.answer_within))),
        }
    }

    /// Reads a text, such as `/metrics`.
    pub(crate) async fn text(&self, path: String) -> Result<String, CallError> {
        let response = self.send(&Call::get(path), None).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
        let body = body.map_err(|error| self.no_answer(causes(error.as_ref())))?.to_bytes();
        match status.is_success() {
            true => Ok(String::from_utf8_lossy(&body).into_owned()),
            false => Err(self.no_answer(format!("{status} for a text"))),
        }
    }

    /// Opens a stream of events, after the one with this id.
    pub(crate) async fn stream(
        &self,
        path: String,
        last_event_id: Option<u64>,
    ) -> Result<Result<Incoming, Answer>, CallError> {
        let response = self.send(&Call::get(path), last_event_id).await?;
        if response.status().is_success() {
            return Ok(Ok(response.into_body()));
        }
        self.read(response).await.map(Err)
    }

    async fn send(&self, call: &Call, last_event_id: Option<u64>) -> Result<Response<Incoming>, CallError> {
        let body = call.body.as_ref().map(Value::to_string).unwrap_or_default();
        let mut request =
            Request::builder().method(call.method.clone()).uri(format!("{}{}", self.url.as_str(), call.path));
        if call.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let request = request.header(ACCEPT, "application/json, application/problem+json, text/event-stream");
        let request = request.body(Full::new(Bytes::from(body))).map_err(|error| self.not_sent(&error))?;
        self.pool.request(request).await.map_err(|error: PoolError| match error.is_connect() {
            true => self.not_sent(&error),
            false => self.no_answer(causes(&error)),
        })
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Answer, CallError> {
        let status = response.status();
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
        let body = body.map_err(|error| self.no_answer(causes(error.as_ref())))?.to_bytes();
        match serde_json::from_slice(&body) {
            Ok(body) => Ok(Answer { status, body }),
            // A refusal without our body still refuses: a proxy, or a path that isn't ours.
            Err(_) if !status.is_success() => Ok(Answer { status, body: Value::Null }),
            Err(error) => {
                Err(self.no_answer(format!("the answer is no JSON ({error}); is this a kunci server?")))
            }
        }
    }

    fn not_sent(&self, error: &dyn StdError) -> CallError {
        CallError::NotSent { url: self.url.as_str().to_owned(), cause: causes(error) }
    }

    fn no_answer(&self, cause: String) -> CallError {
        CallError::NoAnswer { url: self.url.as_str().to_owned(), cause }
    }
}

/// The innermost cause: the outer ones only say that a client had an error.
fn causes(error: &dyn StdError) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
