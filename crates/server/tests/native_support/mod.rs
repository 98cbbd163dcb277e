//! Nodes with a native door on a real socket, and a client that says lines.

#![allow(dead_code, reason = "each test binary uses its part")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test helper fails by panicking")]

use kunci_replica::{Lead, Member, PeerDoor, PeerSecurity, Replica, ReplicaConfig, Role};
use kunci_server::native::{NativeDoor, NativeLimits};
use kunci_server::service::Service;
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Nothing in these tests takes this long.
pub(crate) const SOON: Duration = Duration::from_secs(10);

pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    pub(crate) replica: Replica,
    pub(crate) service: Service,
    pub(crate) stop: CancellationToken,
    pub(crate) door: JoinHandle<()>,
    peer: String,
    data: TempDir,
}

/// A node whose doors are open, and that belongs to no cluster yet.
pub(crate) struct Opening {
    pub(crate) address: SocketAddr,
    pub(crate) native: NativeDoor,
    me: Member,
    peers: PeerDoor,
    stop: CancellationToken,
    door: JoinHandle<()>,
    data: TempDir,
}

impl Opening {
    pub(crate) async fn new(limits: NativeLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let peers = PeerDoor::bind(([127, 0, 0, 1], 0).into(), PeerSecurity::Plain).await.unwrap();
        let peer = peers.local_address().unwrap().to_string();
        let me = Member { native: address.to_string(), peer, ..Member::default() };
        let (native, stop) = (NativeDoor::new(limits, me.clone()), CancellationToken::new());
        let door = tokio::spawn(native.clone().serve(listener, stop.clone()));
        Self { address, native, me, peers, stop, door, data: tempfile::tempdir().unwrap() }
    }

    fn config(&self) -> ReplicaConfig {
        ReplicaConfig::new(self.data.path(), self.me.clone())
    }

    /// The only node of a new cluster.
    pub(crate) async fn form(self) -> Node {
        let config = self.config();
        let replica = Replica::form(config, self.peers, None).await.unwrap();
        assert!(replica.serving(SOON).await, "the replica doesn't serve");
        let service = Service::new(replica.clone());
        self.native.enter(service.clone());
        let Self { address, me, stop, door, data, .. } = self;
        Node { address, replica, service, stop, door, peer: me.peer, data }
    }
}

impl Node {
    pub(crate) async fn start() -> Self {
        Self::start_with(NativeLimits::default()).await
    }

    pub(crate) async fn start_with(limits: NativeLimits) -> Self {
        Opening::new(limits).await.form().await
    }

    /// A new node, taken into this one's cluster, once it is a voter.
    async fn join(&self) -> Self {
        let mut opening = Opening::new(NativeLimits::default()).await;
        let (peer, config) = (opening.me.peer.clone(), opening.config());
        let joining = async {
            let invited = opening.peers.invitation(&opening.me).await;
            Replica::join(config, opening.peers, invited).await.unwrap()
        };
        let both = async { tokio::join!(self.replica.add_member(&peer), joining) };
        let (added, replica) = timeout(SOON, both).await.unwrap();
        let id = added.unwrap().node_id;
        until("the new node is a voter", async || {
            let status = self.replica.status();
            status.members.iter().any(|member| member.id == id && member.role == Role::Follower)
        })
        .await;
        let service = Service::new(replica.clone());
        opening.native.enter(service.clone());
        let Opening { address, me, stop, door, data, .. } = opening;
        Self { address, replica, service, stop, door, peer: me.peer, data }
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Waits until so many wait for the resource and are attached.
    pub(crate) async fn attached(&self, key: &str, wanted: usize) {
        until("so many are attached", async || {
            let queue = self.service.queue(kunci_api::resource(key).unwrap()).await.unwrap();
            queue.body.waiters.iter().filter(|waiter| waiter.attached).count() == wanted
        })
        .await;
    }

    pub(crate) async fn is_held(&self, key: &str) -> bool {
        self.service.status(kunci_api::resource(key).unwrap()).await.unwrap().body.status.held
    }

    /// What happened to the resource last.
    pub(crate) async fn last_event(&self, key: &str) -> &'static str {
        let history = self.service.history(kunci_api::resource(key).unwrap()).await.unwrap();
        history.body.events.last().map_or("", |event| event.kind)
    }

    pub(crate) async fn change_policy(&self, fields: &str) {
        let replaces = self.service.policy().await.unwrap().body.policy_revision;
        let change = format!(r#"{{"replaces":{replaces},"policy":{{{fields}}}}}"#);
        let change = kunci_api::parse(change.as_bytes()).unwrap();
        self.service.change_policy(&change, kunci_types::Origin::UNKNOWN).await.unwrap();
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        timeout(SOON, self.door).await.unwrap().unwrap();
        self.replica.stop().await;
    }
}

/// A cluster of three voters. The first leads.
pub(crate) async fn three() -> [Node; 3] {
    let first = Node::start().await;
    let second = first.join().await;
    let third = first.join().await;
    let nodes = [first, second, third];
    for node in &nodes {
        until("every node knows who leads", async || !matches!(node.replica.lead(), Lead::Nobody { .. }))
            .await;
    }
    nodes
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

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), unread: Vec::new() }
    }

    /// Says the lines, each with its end.
    pub(crate) async fn say(&mut self, lines: &str) {
        let text: String = lines.lines().map(|line| format!("{line}\n")).collect();
        self.send(text.as_bytes()).await;
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// One request and its answer.
    pub(crate) async fn ask(&mut self, line: &str) -> String {
        self.say(line).await;
        self.hear().await
    }

    /// The next answer.
    pub(crate) async fn hear(&mut self) -> String {
        match timeout(Duration::from_secs(40), self.hear_or_end()).await.unwrap() {
            Some(line) => line,
            None => panic!("the connection ended with: {:?}", String::from_utf8_lossy(&self.unread)),
        }
    }

    /// None when the connection ended instead.
    pub(crate) async fn hear_or_end(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.unread.extend_from_slice(&bytes[..count]),
            }
        }
    }

    /// Nothing is answered for a while.
    pub(crate) async fn hears_nothing(&mut self) {
        let heard = timeout(Duration::from_millis(300), self.hear_or_end()).await;
        assert!(heard.is_err(), "{heard:?}");
    }

    /// Every answer until the door closes the connection.
    pub(crate) async fn hear_all(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        let read = async {
            while let Some(line) = self.hear_or_end().await {
                all.push(line);
            }
        };
        timeout(SOON, read).await.unwrap();
        all
    }
}

/// The value of a field of an answer.
pub(crate) fn field<'a>(answer: &'a str, name: &str) -> &'a str {
    let found = answer.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in: {answer}"))
}

/// The answer without the fields whose values differ from run to run.
pub(crate) fn gist(answer: &str) -> String {
    let changing = ["at=", "ttl_ms=", "lease=", "detail=", "held_ms=", "retry_ms="];
    let fields = answer.split(' ').filter(|field| !changing.iter().any(|name| field.starts_with(name)));
    fields.collect::<Vec<_>>().join(" ")
}
