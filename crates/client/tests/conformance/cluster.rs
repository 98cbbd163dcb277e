//! Three real nodes in this process.

use crate::step::seconds;
use crate::weather::Weather;
use kunci_client::{Client, Status};
use kunci_replica::{Lead, Member, PeerDoor, PeerSecurity, Replica, ReplicaConfig, Role};
use kunci_server::native::{NativeDoor, NativeLimits};
use kunci_server::service::Service;
use kunci_types::{FencingToken, Origin, Policy, Reason, ResourceName};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

struct Node {
    replica: Replica,
    service: Service,
    native: String,
    peer: String,
    _data: TempDir,
}

/// A node whose doors are open, and that belongs to no cluster yet.
struct Opening {
    door: NativeDoor,
    me: Member,
    peers: PeerDoor,
    data: TempDir,
}

pub(crate) struct Cluster {
    nodes: Vec<Node>,
    /// One that no bad weather reaches.
    observer: Client,
}

impl Opening {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let native = listener.local_addr().unwrap().to_string();
        let peers = PeerDoor::bind(([127, 0, 0, 1], 0).into(), PeerSecurity::Plain).await.unwrap();
        let peer = peers.local_address().unwrap().to_string();
        let me = Member { native, peer, ..Member::default() };
        let door = NativeDoor::new(NativeLimits::default(), me.clone());
        tokio::spawn(door.clone().serve(listener, CancellationToken::new()));
        Self { door, me, peers, data: tempfile::tempdir().unwrap() }
    }

    fn config(&self) -> ReplicaConfig {
        ReplicaConfig::new(self.data.path(), self.me.clone())
    }

    /// Waits for its invitation, and takes it up.
    async fn join(mut self) -> Node {
        let invited = self.peers.invitation(&self.me).await;
        let config = self.config();
        let replica = Replica::join(config, self.peers, invited).await.unwrap();
        Self::enter(&self.door, self.me, self.data, replica)
    }

    fn enter(door: &NativeDoor, me: Member, data: TempDir, replica: Replica) -> Node {
        let service = Service::new(replica.clone());
        door.enter(service.clone());
        Node { replica, service, native: me.native, peer: me.peer, _data: data }
    }
}

/// Waits until something is so, for at most 20 s.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(20), waiting).await.unwrap_or_else(|_| panic!("not so in 20 s: {what}"));
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let opening = Opening::new().await;
        let config = opening.config();
        let Opening { door, me, peers, data } = opening;
        let replica = Replica::form(config, peers, None).await.unwrap();
        assert!(replica.serving(Duration::from_secs(10)).await);
        let mut nodes = vec![Opening::enter(&door, me, data, replica)];
        for _ in 0..2 {
            let opening = Opening::new().await;
            let founder = nodes[0].replica.clone();
            let peer = opening.me.peer.clone();
            let (added, node) = tokio::join!(founder.add_member(&peer), opening.join());
            let id = added.unwrap().node_id;
            nodes.push(node);
            until("the new node is a voter", async || {
                let members = founder.status().members;
                members.iter().any(|member| member.id == id && member.role == Role::Follower)
            })
            .await;
        }
        let observer = Client::builder().owner("observer");
        let observer = observer.connect(nodes.iter().map(|node| node.native.clone())).await.unwrap();
        Self { nodes, observer }
    }

    /// A new client with this owner, in this weather.
    pub(crate) async fn client(&self, owner: &str, weather: &Weather) -> Client {
        let addresses = self.nodes.iter().map(|node| node.native.clone());
        let builder = Client::builder().owner(owner).connector(Arc::new(weather.clone()));
        builder.connect(addresses).await.unwrap()
    }

    fn leader(&self) -> Option<&Node> {
        self.nodes.iter().find(|node| node.replica.lead() == Lead::Here)
    }

    /// Another node leads afterwards.
    pub(crate) async fn lead_moves(&self) {
        until("somebody leads", async || self.leader().is_some()).await;
        let before = self.leader().unwrap();
        before.replica.transfer_lead(None).await.unwrap();
        let is_another = |node: &Node| node.peer != before.peer;
        until("another node leads", async || self.leader().is_some_and(is_another)).await;
    }

    pub(crate) async fn status(&self, resource: &str) -> Status {
        self.observer.status(resource).await.unwrap()
    }

    /// A resource is free and nobody waits for it, soon.
    pub(crate) async fn nobody_has_or_wants(&self, resource: &str) {
        let free = Status::Free { lock_delay: None, queue_length: 0 };
        until(&format!("{resource} is free"), async || self.status(resource).await == free).await;
    }

    pub(crate) async fn force_release(&self, resource: &str) {
        let Status::Held { token, .. } = self.status(resource).await else { panic!("{resource} isn't held") };
        self.end(resource, token).await;
    }

    /// Changes a limit: `hold=6s`, `wait=2s`, or `usual`.
    pub(crate) async fn policy(&self, limit: &str) {
        let ms = |time: &str| u64::try_from(seconds(time).as_millis()).unwrap();
        let usual = Policy::default();
        let (longest_ms, wait_ms) = match limit.split_once('=') {
            Some(("hold", time)) => (ms(time), usual.wait_ms_max),
            Some(("wait", time)) => (usual.total_hold_ms_max, ms(time)),
            _ => (usual.total_hold_ms_max, usual.wait_ms_max),
        };
        let ttl_ms = usual.ttl_ms_max.min(longest_ms);
        until("somebody leads", async || self.leader().is_some()).await;
        let service = &self.leader().unwrap().service;
        let change = serde_json::json!({
            "replaces": service.policy().await.unwrap().body.policy_revision,
            "policy": {
                "ttlMsMax": ttl_ms,
                "ttlMsDefault": usual.ttl_ms_default.min(ttl_ms),
                "totalHoldMsMax": longest_ms,
                "waitMsMax": wait_ms,
            },
        });
        service.change_policy(&serde_json::from_value(change).unwrap(), Origin::UNKNOWN).await.unwrap();
    }

    async fn end(&self, resource: &str, token: FencingToken) {
        let reason = Reason::parse("the script says so").unwrap();
        let forced = kunci_api::Forced { token, reason };
        let service = &self.leader().unwrap().service;
        service.force_release(ResourceName::parse(resource).unwrap(), forced, Origin::UNKNOWN).await.unwrap();
    }
}
