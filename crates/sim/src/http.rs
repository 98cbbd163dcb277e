//! Calls of an HTTP door, by whatever host.
//!
//! Owns: one connection for each call, as curl has it. Never: tries again.

use crate::network::Plug;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::io;

/// What a door answered.
#[derive(Clone, Debug)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// `Kunci-Position`: where the answer stands in the order of the log.
    pub position: String,
    /// The body; null when it isn't JSON.
    pub body: Value,
}

/// Asks the door at `address`, in the caller's process, and waits for the whole answer. Dropped, it closes the connection.
///
/// # Errors
/// When there is no connection, or it breaks before the whole answer has come: the call may have taken effect then.
pub async fn call(
    plug: &Plug,
    address: &str,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> io::Result<HttpAnswer> {
    let stream = plug.connect(address).await?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let connection = kunci_process::spawn(connection);
    let _ended = EndsWith(connection.abort_handle());
    let bytes = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    let request = Request::builder().method(method).uri(path).header("host", address);
    let request = request.header("content-type", "application/json").body(Full::new(bytes));
    let request = request.map_err(io::Error::other)?;
    let answer = sender.send_request(request).await.map_err(io::Error::other)?;
    let status = answer.status().as_u16();
    let position = answer.headers().get("kunci-position").and_then(|position| position.to_str().ok());
    let position = position.unwrap_or_default().to_owned();
    let bytes = answer.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    Ok(HttpAnswer { status, position, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) })
}

/// Ends a connection with its call.
struct EndsWith(tokio::task::AbortHandle);

impl Drop for EndsWith {
    fn drop(&mut self) {
        self.0.abort();
    }
}
