//! A real node for tests: the binary, a data folder, and plain HTTP to it.
//!
//! Owns: starting and ending one `kunci server` process. Never: ends a process that it didn't start.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A running `kunci server`; killed when dropped.
pub(crate) struct Node {
    process: Child,
    http: SocketAddr,
    log: PathBuf,
}

impl Node {
    /// Starts a node on a port, with these flags besides, without waiting for it.
    pub(crate) fn spawn(data: &Path, port: u16, flags: &[&str]) -> Self {
        let log = data.with_extension("log");
        let words = std::fs::File::options().create(true).append(true).open(&log).unwrap();
        let http = SocketAddr::from(([127, 0, 0, 1], port));
        let process = Command::new(env!("CARGO_BIN_EXE_kunci"))
            .arg("server")
            .arg("--data")
            .arg(data)
            .args(["--http", &http.to_string()])
            .args(flags)
            // Nobody comes to it, and tests run side by side.
            .env("KUNCI_NATIVE", "127.0.0.1:0")
            .stdin(Stdio::null())
            .stdout(words.try_clone().unwrap())
            .stderr(words)
            .spawn()
            .unwrap();
        Self { process, http, log }
    }

    /// One HTTP call on a connection of its own.
    pub(crate) fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> std::io::Result<(u16, Value)> {
        call(self.http, method, path, body)
    }

    /// Where it listens.
    pub(crate) fn http(&self) -> SocketAddr {
        self.http
    }

    /// Everything that it has said.
    pub(crate) fn words(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills it, as a power cut would, and waits for its end.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// One HTTP call on a connection of its own: status and JSON body.
pub(crate) fn call(
    http: SocketAddr,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> std::io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect_timeout(&http, Duration::from_secs(2))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {http}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    parse(&answer).ok_or_else(|| std::io::Error::other(format!("not a whole answer: {answer:?}")))
}

fn parse(answer: &str) -> Option<(u16, Value)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return None;
    }
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap_or(Value::Null) };
    Some((status, body))
}
