//! The proxy's own address: `/metrics`, `/livez`, `/readyz`.
//!
//! Owns: their answers. Never: passes anything on, or changes anything.

use super::connection::Front;
use super::traffic;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// How many may ask at a time.
const CONNECTIONS_MAX: usize = 64;
/// How long a head may take.
const HEAD_WITHIN: Duration = Duration::from_secs(5);

/// Answers until it is aborted.
pub(super) async fn serve(listener: TcpListener, front: Arc<Front>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let front = Arc::clone(&front);
        tokio::spawn(async move {
            let _permit = permit;
            let service = service_fn(|request: Request<Incoming>| {
                let response = answer(&request, &front);
                async { Ok::<_, Infallible>(response) }
            });
            let serving = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_WITHIN)
                .serve_connection(TokioIo::new(stream), service);
            // Whoever asks has gone: nobody is left to tell.
            let _ = serving.await;
        });
    }
}

fn answer<B>(request: &Request<B>, front: &Front) -> Response<Full<Bytes>> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let (status, body) = match request.uri().path() {
        _ if !is_read => (StatusCode::METHOD_NOT_ALLOWED, "GET only\n".to_owned()),
        "/metrics" => (StatusCode::OK, traffic::text(front)),
        "/livez" => (StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => match front.passages.gate().check() {
            Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
            Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        },
        _ => (StatusCode::NOT_FOUND, "here are /metrics, /livez and /readyz\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}
