//! Requests, written by hand: what a test sends is what it says.

use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answer as it came.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The body of a refusal.
    pub(crate) fn problem(&self) -> Value {
        assert!(self.head.contains("content-type: application/problem+json"), "{self:?}");
        serde_json::from_str(&self.body).unwrap()
    }

    /// Status and code of a refusal.
    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status, self.problem()["code"].as_str().unwrap().to_owned())
    }

    fn of(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }
}

pub(crate) fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends these bytes and reads until the connection is closed; an empty answer has status 0.
pub(crate) fn raw(to: SocketAddr, text: &str) -> Answer {
    let mut stream = connect(to);
    // It may be closed before everything is sent.
    let _ = stream.write_all(text.as_bytes());
    Answer::of(&rest(&mut stream))
}

/// Everything until the connection is closed.
pub(crate) fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 64 << 10];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..count]);
    }
    bytes
}

/// The text of a write under a token.
pub(crate) fn text(method: &str, path: &str, resource: &str, token: u64, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Kunci-Resource: {resource}\r\n\
         X-Kunci-Token: {token}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// A `PUT` under a token.
pub(crate) fn put(to: SocketAddr, path: &str, resource: &str, token: u64) -> Answer {
    raw(to, &text("PUT", path, resource, token, "body"))
}

pub(crate) fn get(to: SocketAddr, path: &str) -> Answer {
    raw(to, &format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"))
}
