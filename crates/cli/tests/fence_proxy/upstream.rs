//! The service behind the proxy, in the test itself.
//!
//! Owns: what it does with a request, by its path; and the journal of what was written. Never: a token compared.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

/// One write that took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) path: String,
    pub(crate) token: u64,
    pub(crate) body: String,
}

/// A service that runs until it is dropped.
#[derive(Clone)]
pub(crate) struct Upstream {
    address: SocketAddr,
    state: Arc<State>,
    _runtime: Arc<tokio::runtime::Runtime>,
}

#[derive(Default)]
struct State {
    /// Every request that came, whatever became of it.
    came: Mutex<Vec<String>>,
    written: Mutex<Vec<Written>>,
}

impl Upstream {
    pub(crate) fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let state = Arc::<State>::default();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = Arc::clone(&state);
        runtime.spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let state = Arc::clone(&serving);
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer(request, Arc::clone(&state)));
                    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
        Self { address, state, _runtime: Arc::new(runtime) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was written, in the order in which it took effect.
    pub(crate) fn written(&self) -> Vec<Written> {
        self.state.written.lock().unwrap().clone()
    }

    /// The tokens of what was written, in order.
    pub(crate) fn tokens(&self) -> Vec<u64> {
        self.written().iter().map(|written| written.token).collect()
    }

    /// Method and path of every request that came.
    pub(crate) fn came(&self) -> Vec<String> {
        self.state.came.lock().unwrap().clone()
    }

    /// Waits until a request with these words came.
    pub(crate) fn wait_came(&self, words: &str) {
        let came = (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            self.came().iter().any(|came| came.contains(words))
        });
        assert!(came, "no request with {words:?} came: {:?}", self.came());
    }
}

type Answer = Result<Response<UnsyncBoxBody<Bytes, hyper::Error>>, hyper::Error>;

async fn answer(request: Request<Incoming>, state: Arc<State>) -> Answer {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let full = |text: String| Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
    let head = parts
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())));
    let head = head.collect::<Vec<_>>().join("\n");
    state.came.lock().unwrap().push(format!("{} {path}", parts.method));
    let mut words = path.split('/').skip(1);
    match words.next().unwrap_or_default() {
        "echo" => return Ok(Response::new(body.boxed_unsync())),
        "head" => return Ok(Response::new(full(head))),
        "early" => {
            let mut response = Response::new(full("too much".to_owned()));
            *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
            return Ok(response);
        }
        _ if [Method::GET, Method::HEAD].contains(&parts.method) => {
            return Ok(Response::new(full("read".to_owned())));
        }
        _ => {}
    }
    // A body that ends before its end is no write.
    let body = String::from_utf8_lossy(&body.collect().await?.to_bytes()).into_owned();
    let token =
        parts.headers.get("x-kunci-token").map_or(0, |token| token.to_str().unwrap().parse().unwrap());
    let after_ms = if path.starts_with("/slow/") { words.next().unwrap().parse().unwrap() } else { 0 };
    let written = Written { path: path.clone(), token, body };
    // In a task of its own: a connection that ends changes nothing.
    let writing = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(after_ms)).await;
        state.written.lock().unwrap().push(written);
    });
    writing.await.unwrap();
    if path.starts_with("/hang") {
        std::future::pending::<()>().await;
    }
    let long = if path.starts_with("/long") { "x".repeat(8 << 20) } else { "written".to_owned() };
    Ok(Response::new(full(long)))
}
