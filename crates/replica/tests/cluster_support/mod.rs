//! Several replicas in one process, over loopback, with links that a test can cut.

use crate::replica_support::{door, log};
use kunci_replica::transport::{BoxedStream, Links, TcpLinks};
use kunci_replica::{Lead, Member, PeerDoor, PeerSecurity, Replica, ReplicaConfig};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;

/// Which ways are cut: from the node that listens at the first address to the one at the second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cuts(Arc<Mutex<BTreeSet<(String, String)>>>);

impl Cuts {
    pub(crate) fn cut_both_ways(&self, one: &str, other: &str) {
        let mut cuts = self.0.lock().unwrap();
        cuts.insert((one.to_owned(), other.to_owned()));
        cuts.insert((other.to_owned(), one.to_owned()));
    }

    pub(crate) fn heal(&self) {
        self.0.lock().unwrap().clear();
    }

    fn is_cut(&self, from: &str, to: &str) -> bool {
        self.0.lock().unwrap().contains(&(from.to_owned(), to.to_owned()))
    }
}

/// The way out of the node that listens at `from`.
struct CutLinks {
    from: String,
    cuts: Cuts,
}

impl Links for CutLinks {
    fn connect<'a>(&'a self, to: &'a str) -> futures::future::BoxFuture<'a, io::Result<BoxedStream>> {
        Box::pin(async move {
            if self.cuts.is_cut(&self.from, to) {
                return std::future::pending().await;
            }
            let inner = TcpLinks::default().connect(to).await?;
            let stream =
                CutStream { inner, from: self.from.clone(), to: to.to_owned(), cuts: self.cuts.clone() };
            Ok(Box::new(stream) as BoxedStream)
        })
    }
}

/// Lets nothing through while its way is cut; what was written then is lost, so it never comes back to life.
struct CutStream {
    inner: BoxedStream,
    from: String,
    to: String,
    cuts: Cuts,
}

impl AsyncRead for CutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if read.is_ready() && self.cuts.is_cut(&self.to, &self.from) {
            buffer.clear();
            return Poll::Pending;
        }
        read
    }
}

impl AsyncWrite for CutStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.cuts.is_cut(&self.from, &self.to) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// A node of a test's cluster.
pub(crate) struct Node {
    pub(crate) replica: Replica,
    pub(crate) member: Member,
    pub(crate) data: PathBuf,
}

/// A cluster in one process.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    pub(crate) cuts: Cuts,
    /// A snapshot after this many bytes of log, which keeps this many entries behind it.
    snapshots: (u64, u64),
    folder: tempfile::TempDir,
}

impl Cluster {
    /// `count` voters.
    pub(crate) async fn of(count: usize) -> Self {
        Self::with_snapshots(count, (64 << 20, 1_000)).await
    }

    /// The same, with snapshots after so many bytes of log, which keep so many entries behind them.
    pub(crate) async fn with_snapshots(count: usize, snapshots: (u64, u64)) -> Self {
        log();
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = Self { nodes: Vec::new(), cuts: Cuts::default(), snapshots, folder };
        let (door, member) = cluster.door(None).await;
        let data = cluster.folder(1);
        let replica = Replica::form(cluster.config(&data, &member), door, None).await.unwrap();
        assert!(replica.serving(Duration::from_secs(5)).await, "the founder doesn't serve");
        cluster.nodes.push(Node { replica, member, data });
        for _ in 1..count {
            cluster.grow().await;
        }
        cluster
    }

    /// Takes in one more node and waits until it votes.
    pub(crate) async fn grow(&mut self) {
        let new = self.new_node(0).await;
        let peer = new.member.peer.clone();
        let (added, node) =
            tokio::join!(async { self.leader().replica.add_member(&peer).await.unwrap() }, new.join());
        self.nodes.push(node);
        self.until_voter(added.node_id).await;
    }

    /// A node of no cluster that waits for its invitation.
    pub(crate) async fn new_node(&self, priority: u8) -> NewNode {
        let (door, member) = self.door(None).await;
        let data = self.folder.path().join(format!("data-{}", member.peer.replace(':', "-")));
        let member = Member { priority, ..member };
        let config = self.config(&data, &member);
        NewNode { door, member, config }
    }

    /// Starts a stopped node again, at the same address or another.
    pub(crate) async fn start_again(&self, node: &Node, at: &str) -> Node {
        for _ in 0..100 {
            let (door, member) = self.door(Some(at)).await;
            let config = self.config(&node.data, &member);
            if let Ok(replica) = Replica::open(config, door).await {
                return Node { replica, member, data: node.data.clone() };
            }
            // Tasks of the stopped replica may still be on their way out, with the log open.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the folder of a stopped replica can't be opened after 5 s");
    }

    pub(crate) async fn until_voter(&self, node_id: u64) {
        until("the learner becomes a voter", || {
            let status = self.leader().replica.status();
            status
                .members
                .iter()
                .any(|member| member.id == node_id && member.role != kunci_replica::Role::Learner)
        })
        .await;
    }

    /// Who leads, once somebody does.
    pub(crate) async fn led(&self) -> &Node {
        until("somebody leads", || self.nodes.iter().any(|node| node.replica.lead() == Lead::Here)).await;
        self.leader()
    }

    pub(crate) fn leader(&self) -> &Node {
        self.nodes.iter().find(|node| node.replica.lead() == Lead::Here).unwrap()
    }

    pub(crate) fn node(&self, node_id: u64) -> &Node {
        self.nodes.iter().find(|node| node.replica.node_id() == node_id).unwrap()
    }

    pub(crate) fn config(&self, data: &Path, member: &Member) -> ReplicaConfig {
        let (snapshot_every_bytes, entries_kept) = self.snapshots;
        ReplicaConfig { snapshot_every_bytes, entries_kept, ..ReplicaConfig::new(data, member.clone()) }
    }

    fn folder(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("data-{number}"))
    }

    async fn door(&self, at: Option<&str>) -> (PeerDoor, Member) {
        let Some(at) = at else {
            let (plain, member) = door().await;
            drop(plain);
            return Box::pin(self.door(Some(&member.peer))).await;
        };
        let listener = loop {
            match TcpListener::bind(at).await {
                Ok(listener) => break listener,
                // The door of a stopped replica is on its way out.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        let links = CutLinks { from: at.to_owned(), cuts: self.cuts.clone() };
        let door = PeerDoor::new(Box::new(listener), Arc::new(links), PeerSecurity::Plain);
        let member = Member {
            peer: at.to_owned(),
            http: format!("http of {at}"),
            native: format!("native of {at}"),
            ..Member::default()
        };
        (door, member)
    }
}

/// A node of no cluster.
pub(crate) struct NewNode {
    pub(crate) door: PeerDoor,
    pub(crate) member: Member,
    config: ReplicaConfig,
}

impl NewNode {
    /// Waits for the invitation and joins.
    pub(crate) async fn join(self) -> Node {
        let Self { mut door, member, config } = self;
        let config = ReplicaConfig { member: member.clone(), ..config };
        let invited = door.invitation(&member).await;
        let data = config.data.clone();
        let replica = Replica::join(config, door, invited).await.unwrap();
        Node { replica, member, data }
    }
}

pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("15 s passed, and still not: {what}");
}
