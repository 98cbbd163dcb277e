//! One kept HTTP connection.
//!
//! Dropping it closes the socket at once, so an answer that is still to come is lost.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use kunci_oracle::{Answer, Position};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// On one machine a connection is there at once or not at all.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);

/// An open connection.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
    host: String,
}

impl Connection {
    pub(super) async fn open(door: SocketAddr) -> std::io::Result<Self> {
        let stream = timeout(CONNECT_WITHIN, TcpStream::connect(door)).await??;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
        // How it ends shows in the calls.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { sender, driver, host: door.to_string() })
    }

    /// Whether the peer hasn't closed it, as far as it is known.
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// One call. An error leaves it unknown whether the call was taken.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header("host", &self.host);
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
