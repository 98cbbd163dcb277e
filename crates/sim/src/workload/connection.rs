//! One kept HTTP connection over the simulated network.
//!
//! Owns: a request's bytes and an answer's. Never: a retry. Dropping it closes the stream at once, so that an answer which
//! is still to come is lost.

use crate::network::{HTTP, Plug};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use kunci_oracle::{Answer, Position};
use serde_json::Value;
use std::io;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How long a client waits for a connection.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);

/// An open connection.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
    host: String,
}

/// What is asked, as HTTP.
pub(super) struct Asked {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) body: Option<Value>,
}

impl Connection {
    pub(super) async fn open(plug: &Plug, node: &str) -> io::Result<Self> {
        let host = format!("{node}:{HTTP}");
        let stream = kunci_process::timeout(CONNECT_WITHIN, plug.connect(&host)).await;
        let stream = stream.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // How it ends shows in the calls.
        let driver = kunci_process::spawn(async move { drop(connection.await) });
        Ok(Self { sender, driver, host })
    }

    /// Whether the node hasn't closed it, as far as it is known.
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// One call. An error leaves it unknown whether the call was taken.
    pub(super) async fn ask(&mut self, asked: &Asked) -> Result<Answer, String> {
        let bytes = asked.body.as_ref().map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let request = Request::builder().method(asked.method).uri(&asked.path).header("host", &self.host);
        let request = request.header(CONTENT_TYPE, "application/json").body(Full::new(bytes));
        let request = request.map_err(|error| error.to_string())?;
        let response = self.sender.send_request(request).await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        Ok(Answer {
            status: head.status.as_u16(),
            position: text(&head.headers, "kunci-position").and_then(Position::parse),
            leader: text(&head.headers, "kunci-leader").map(str::to_owned),
            body: serde_json::from_slice(&body).unwrap_or_default(),
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
