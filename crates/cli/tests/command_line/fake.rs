//! A server with one lock, whatever it is called, and a weather that a test sets.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

/// How requests fare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    /// As they should.
    Fine,
    /// Refused, not applied.
    NoQuorum,
    /// Never answered, not applied.
    Silent,
    /// The connection breaks before anything is applied.
    Broken,
    /// Applied; then the connection breaks.
    AnswerLost,
    /// An error that is no word of ours.
    Teapot,
}

/// A lease that is current.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) owner: String,
    pub(crate) lease: String,
    pub(crate) token: u64,
    pub(crate) renewed_at: Instant,
    ttl: Duration,
    request: String,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) held: Option<Held>,
    pub(crate) queue: VecDeque<String>,
    pub(crate) weather: Weather,
    /// Bad weather that ends after this many requests.
    pub(crate) showers: usize,
    pub(crate) log: Vec<(String, Value)>,
    pub(crate) released: HashSet<String>,
    /// Streams that `GET /events` plays, one for each connection.
    pub(crate) streams: VecDeque<(StatusCode, String)>,
    ended: HashMap<String, &'static str>,
    cancelled: HashSet<String>,
    tokens: u64,
}

/// A running fake.
#[derive(Clone)]
pub(crate) struct Fake {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _runtime: Arc<tokio::runtime::Runtime>,
}

/// How long a waiting call is held open.
const HOLD: Duration = Duration::from_millis(400);

impl Fake {
    pub(crate) fn start() -> Self {
        let state = State {
            held: None,
            queue: VecDeque::new(),
            weather: Weather::Fine,
            showers: 0,
            log: Vec::new(),
            released: HashSet::new(),
            streams: VecDeque::new(),
            ended: HashMap::new(),
            cancelled: HashSet::new(),
            tokens: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(serve(listener, Arc::clone(&state)));
        Self { address, state, _runtime: Arc::new(runtime) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn set(&self, weather: Weather) {
        self.state().weather = weather;
    }

    /// This weather for so many requests, then a fine one.
    pub(crate) fn shower(&self, weather: Weather, requests: usize) {
        let mut state = self.state();
        (state.weather, state.showers) = (weather, requests);
    }

    /// Somebody else takes the lock.
    pub(crate) fn take(&self) {
        self.state().grant("other", "other-request", Duration::from_secs(3600));
    }

    /// Whoever holds the lock has it no more.
    pub(crate) fn end_lease(&self, how: &'static str) {
        let mut state = self.state();
        if let Some(held) = state.held.take() {
            state.ended.insert(held.lease, how);
        }
    }

    /// The requests to a verb, in order.
    pub(crate) fn requests(&self, verb: &str) -> Vec<Value> {
        let state = self.state();
        state.log.iter().filter(|(logged, _)| logged == verb).map(|(_, body)| body.clone()).collect()
    }

    pub(crate) fn is_free(&self) -> bool {
        let mut state = self.state();
        state.expire();
        state.held.is_none() && state.queue.is_empty()
    }
}

impl State {
    fn expire(&mut self) {
        if let Some(held) = self.held.take_if(|held| held.renewed_at.elapsed() >= held.ttl) {
            self.ended.insert(held.lease, "expired");
        }
    }

    fn grant(&mut self, owner: &str, request: &str, ttl: Duration) {
        self.tokens += 1;
        self.held = Some(Held {
            owner: owner.to_owned(),
            // Begins with a dash, as one lease id in 64 does.
            lease: format!("-{:0>21}", self.tokens),
            token: self.tokens,
            renewed_at: Instant::now(),
            ttl,
            request: request.to_owned(),
        });
    }

    /// Grants the lock if it is this request's turn, and answers if there is anything to answer.
    fn acquire(&mut self, body: &Value) -> Option<(StatusCode, Value)> {
        self.expire();
        let request = body["requestId"].as_str().unwrap();
        if self.cancelled.contains(request) {
            return Some(refuse("cancelled", json!({})));
        }
        let is_turn = self.queue.front().is_none_or(|head| head == request);
        if self.held.is_none() && is_turn {
            self.queue.pop_front();
            let ttl = Duration::from_millis(body["leaseDurationMs"].as_u64().unwrap_or(30_000));
            self.grant(body["clientId"].as_str().unwrap(), request, ttl);
        }
        match &self.held {
            Some(held) if held.request == request => Some((StatusCode::OK, granted(held))),
            Some(held) if body["waitTimeoutMs"] == 0 => {
                let by = json!({ "holder": held.owner, "fencingToken": held.token, "acquired": false });
                Some(refuse("held", by))
            }
            _ => {
                if !self.queue.iter().any(|queued| queued == request) {
                    self.queue.push_back(request.to_owned());
                }
                None
            }
        }
    }

    fn renew(&mut self, body: &Value) -> (StatusCode, Value) {
        self.expire();
        match &mut self.held {
            Some(held) if body["leaseId"] == held.lease.as_str() || body["fencingToken"] == held.token => {
                held.renewed_at = Instant::now();
                let remaining = held.ttl.as_millis();
                (StatusCode::OK, json!({ "renewed": true, "remainingMs": u64::try_from(remaining).unwrap() }))
            }
            _ => refuse("not_holder", json!({ "renewed": false })),
        }
    }

    fn release(&mut self, body: &Value) -> (StatusCode, Value) {
        self.expire();
        let lease = body["leaseId"].as_str().unwrap_or_default().to_owned();
        if self.held.take_if(|held| held.lease == lease).is_some() {
            self.released.insert(lease);
            return (StatusCode::OK, json!({ "released": true }));
        }
        if self.released.contains(&lease) {
            return (StatusCode::OK, json!({ "released": true, "already": true }));
        }
        let reason = self.ended.get(&lease).copied().unwrap_or("unknown_lease");
        refuse("not_holder", json!({ "released": false, "reason": reason }))
    }

    fn cancel(&mut self, body: &Value) -> (StatusCode, Value) {
        self.expire();
        let request = body["requestId"].as_str().unwrap();
        if let Some(held) = self.held.as_ref().filter(|held| held.request == request) {
            return (StatusCode::OK, granted(held));
        }
        self.queue.retain(|queued| queued != request);
        self.cancelled.insert(request.to_owned());
        (StatusCode::OK, json!({ "cancelled": true }))
    }

    fn status(&mut self) -> (StatusCode, Value) {
        self.expire();
        match &self.held {
            None => (StatusCode::OK, json!({ "held": false })),
            Some(held) => (
                StatusCode::OK,
                json!({ "held": true, "holder": held.owner, "fencingToken": held.token, "queueLength": self.queue.len() }),
            ),
        }
    }

    fn weather_now(&mut self) -> Weather {
        let now = self.weather;
        if self.showers > 0 {
            self.showers -= 1;
            if self.showers == 0 {
                self.weather = Weather::Fine;
            }
        }
        now
    }
}

fn granted(held: &Held) -> Value {
    let remaining = held.ttl.saturating_sub(held.renewed_at.elapsed()).as_millis();
    json!({
        "acquired": true,
        "leaseId": held.lease,
        "fencingToken": held.token,
        "remainingMs": u64::try_from(remaining).unwrap(),
        "requestId": held.request,
    })
}

fn refuse(code: &str, mut body: Value) -> (StatusCode, Value) {
    body["code"] = code.into();
    body["applied"] = "no".into();
    (StatusCode::CONFLICT, body)
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, Arc::clone(&state)));
            // A connection that breaks is part of the test.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// What ends the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection breaks")]
struct Breaks;

async fn answer(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<Response<Full<Bytes>>, Breaks> {
    let path = request.uri().path_and_query().unwrap().to_string();
    let is_read = request.method() == Method::GET;
    let body = request.into_body().collect().await.map_err(|_| Breaks)?.to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let verb = if is_read { path.clone() } else { path.rsplit('/').next().unwrap().to_owned() };
    let weather = {
        let mut state = state.lock().unwrap();
        state.log.push((verb.clone(), body.clone()));
        state.weather_now()
    };
    let unavailable =
        |code: &str| (StatusCode::SERVICE_UNAVAILABLE, json!({ "code": code, "applied": "no" }));
    let (status, body) = match weather {
        Weather::Silent => std::future::pending::<Result<_, Infallible>>().await.map_err(|_| Breaks)?,
        Weather::Broken => return Err(Breaks),
        Weather::NoQuorum => unavailable("no_quorum"),
        Weather::Teapot => (StatusCode::IM_A_TEAPOT, Value::Null),
        Weather::Fine | Weather::AnswerLost if path.starts_with("/events") => {
            let next = state.lock().unwrap().streams.pop_front();
            let Some((status, text)) = next else { return Err(Breaks) };
            return Ok(Response::builder().status(status).body(Full::from(text)).unwrap());
        }
        Weather::Fine | Weather::AnswerLost => apply(&verb, &body, &state).await?,
    };
    if weather == Weather::AnswerLost {
        return Err(Breaks);
    }
    Ok(Response::builder().status(status).body(Full::from(body.to_string())).unwrap())
}

async fn apply(verb: &str, body: &Value, state: &Mutex<State>) -> Result<(StatusCode, Value), Breaks> {
    Ok(match verb {
        "acquire" => acquire(body, state).await?,
        "renew" => state.lock().unwrap().renew(body),
        "release" => state.lock().unwrap().release(body),
        "cancel" => state.lock().unwrap().cancel(body),
        path if path.starts_with("/locks/") => state.lock().unwrap().status(),
        _ => (StatusCode::NOT_FOUND, Value::Null),
    })
}

async fn acquire(body: &Value, state: &Mutex<State>) -> Result<(StatusCode, Value), Breaks> {
    let began_at = Instant::now();
    let wait = Duration::from_millis(body["waitTimeoutMs"].as_u64().unwrap());
    loop {
        if let Some(answer) = state.lock().unwrap().acquire(body) {
            return Ok(answer);
        }
        if began_at.elapsed() >= wait {
            let request = body["requestId"].as_str().unwrap();
            state.lock().unwrap().queue.retain(|queued| queued != request);
            return Ok(refuse("timed_out", json!({ "acquired": false })));
        }
        if began_at.elapsed() >= HOLD {
            return Ok((StatusCode::ACCEPTED, json!({ "acquired": false, "queued": true, "position": 1 })));
        }
        if state.lock().unwrap().weather == Weather::Broken {
            return Err(Breaks);
        }
        sleep(Duration::from_millis(1)).await;
    }
}
