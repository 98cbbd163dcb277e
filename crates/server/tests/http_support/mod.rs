//! A node's HTTP door on a real socket, and a client that can also misbehave.

#![allow(dead_code, reason = "each test binary uses its part")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test helper fails by panicking")]

pub(crate) mod cluster;
pub(crate) mod wire;

use kunci_replica::{Member, PeerDoor, Replica, ReplicaConfig};
use kunci_server::http::{HttpDoor, HttpLimits};
use kunci_server::service::Service;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use wire::Wire;

/// Nothing in these tests takes this long.
pub(crate) const SOON: Duration = Duration::from_secs(10);

pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    pub(crate) replica: Replica,
    pub(crate) stop: CancellationToken,
    pub(crate) door: JoinHandle<()>,
    pub(crate) http: HttpDoor,
    pub(crate) wire: Wire,
    /// Where its peers reach it.
    pub(crate) peer: String,
    data: TempDir,
}

/// A node whose doors are open, and that belongs to no cluster yet.
pub(crate) struct Opening {
    pub(crate) address: SocketAddr,
    pub(crate) me: Member,
    pub(crate) http: HttpDoor,
    pub(crate) peers: PeerDoor,
    pub(crate) stop: CancellationToken,
    pub(crate) door: JoinHandle<()>,
    pub(crate) wire: Wire,
    pub(crate) data: TempDir,
}

impl Opening {
    pub(crate) async fn new(data: TempDir, limits: HttpLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let wire = Wire::default();
        let (peers, peer) = wire.door().await;
        let me = Member { http: address.to_string(), peer: peer.to_string(), ..Member::default() };
        let (http, stop) = (HttpDoor::new(limits, me.clone()), CancellationToken::new());
        let door = tokio::spawn(http.clone().serve(listener, stop.clone()));
        Self { address, me, http, peers, stop, door, wire, data }
    }

    /// One call on a connection of its own.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Reply {
        connect(self.address).await.call(method, path, body).await
    }
}

pub(crate) async fn connect(address: SocketAddr) -> Connection {
    Connection { stream: TcpStream::connect(address).await.unwrap(), unread: Vec::new() }
}

impl Node {
    pub(crate) async fn start() -> Self {
        Self::start_with(HttpLimits::default()).await
    }

    pub(crate) async fn start_with(limits: HttpLimits) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), limits).await
    }

    /// The node that lives in the folder, or the only one of a new cluster.
    async fn start_in(data: TempDir, limits: HttpLimits) -> Self {
        let opening = Opening::new(data, limits).await;
        let config = ReplicaConfig::new(opening.data.path(), opening.me.clone());
        let replica = if Replica::has_identity(opening.data.path()) {
            Replica::open(config, opening.peers).await.unwrap()
        } else {
            Replica::form(config, opening.peers, None).await.unwrap()
        };
        assert!(replica.serving(SOON).await, "the replica doesn't serve");
        opening.http.enter(Service::new(replica.clone()));
        let Opening { address, http, stop, door, wire, data, me, .. } = opening;
        Self { address, replica, http, stop, door, wire, peer: me.peer, data }
    }

    pub(crate) async fn connect(&self) -> Connection {
        connect(self.address).await
    }

    /// One call on a connection of its own.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Reply {
        self.connect().await.call(method, path, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call("GET", path, Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.call("POST", path, body).await
    }

    pub(crate) async fn acquire(&self, resource: &str, owner: &str) -> Reply {
        self.post(&format!("/locks/{resource}/acquire"), json!({ "clientId": owner })).await
    }

    pub(crate) async fn release(&self, resource: &str, grant: &Reply) -> Reply {
        self.post(&format!("/locks/{resource}/release"), json!({ "leaseId": grant.body["leaseId"] })).await
    }

    /// Waits until so many wait for the resource and are attached.
    pub(crate) async fn attached(&self, resource: &str, wanted: usize) {
        until("so many are attached", async || {
            let queue = self.get(&format!("/locks/{resource}/queue")).await;
            let waiters = queue.body["waiters"].as_array().unwrap();
            waiters.iter().filter(|waiter| waiter["attached"] == true).count() == wanted
        })
        .await;
    }

    /// Stops behind a snapshot and starts again, so that no event from before is kept.
    pub(crate) async fn restart_from_snapshot(self) -> Self {
        self.replica.trigger_snapshot().await;
        let snapshots = self.data.path().join("snapshots");
        until("a snapshot file is there", async || {
            std::fs::read_dir(&snapshots).is_ok_and(|files| {
                files.flatten().any(|file| file.file_name().to_string_lossy().ends_with(".kunci"))
            })
        })
        .await;
        self.restart().await
    }

    /// Stops and starts again.
    pub(crate) async fn restart(self) -> Self {
        let Self { replica, stop, door, data, .. } = self;
        stop.cancel();
        timeout(SOON, door).await.unwrap().unwrap();
        replica.stop().await;
        drop(replica);
        Self::start_in(data, HttpLimits::default()).await
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        timeout(SOON, self.door).await.unwrap().unwrap();
        self.replica.stop().await;
    }
}

pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..400 {
        if is_so().await {
            return;
        }
        sleep(Duration::from_millis(25)).await;
    }
    panic!("10 s passed, and still not: {what}");
}

pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    pub(crate) fn is(&self, status: u16, code: &str) -> bool {
        (self.status, self.code()) == (status, code)
    }
}

pub(crate) fn request(method: &str, path: &str, body: &Value) -> String {
    if body.is_null() {
        return format!("{method} {path} HTTP/1.1\r\nhost: kunci\r\n\r\n");
    }
    let body = body.to_string();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: kunci\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

impl Connection {
    pub(crate) async fn call(&mut self, method: &str, path: &str, body: Value) -> Reply {
        self.send(&request(method, path, &body)).await;
        self.reply().await
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    pub(crate) async fn reply(&mut self) -> Reply {
        let read = timeout(Duration::from_secs(40), self.read_reply()).await.unwrap();
        let Some(reply) = read else {
            panic!("the connection ended with: {:?}", String::from_utf8_lossy(&self.unread));
        };
        reply
    }

    /// `None` when the connection ended instead.
    pub(crate) async fn read_reply(&mut self) -> Option<Reply> {
        let (status, headers) = self.head().await?;
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        while self.unread.len() < length {
            self.more().await?;
        }
        let body: Vec<u8> = self.unread.drain(..length).collect();
        let text = String::from_utf8(body).unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Some(Reply { status, headers, body, text })
    }

    pub(crate) async fn head(&mut self) -> Option<(u16, HashMap<String, String>)> {
        let end = loop {
            if let Some(at) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            self.more().await?;
        };
        let head: Vec<u8> = self.unread.drain(..end + 4).collect();
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        Some((status, headers))
    }

    async fn more(&mut self) -> Option<()> {
        let mut bytes = [0; 16 << 10];
        match self.stream.read(&mut bytes).await {
            Ok(0) | Err(_) => None,
            Ok(count) => {
                self.unread.extend_from_slice(&bytes[..count]);
                Some(())
            }
        }
    }

    /// Waits until what came so far contains `text`, and gives it all back.
    pub(crate) async fn read_until(&mut self, text: &str) -> String {
        let read = async {
            loop {
                let seen = String::from_utf8_lossy(&self.unread).into_owned();
                if seen.contains(text) {
                    self.unread.clear();
                    return seen;
                }
                assert!(self.more().await.is_some(), "the stream ended with: {seen}");
            }
        };
        timeout(SOON, read).await.unwrap()
    }

    /// Waits until the server has closed the connection.
    pub(crate) async fn closed(&mut self) {
        let read = async { while self.more().await.is_some() {} };
        timeout(SOON, read).await.unwrap();
    }
}
