//! A network in memory whose links can be cut, made slow, and made to lose answers.

use super::super::dial::Dialer;
use super::super::door::{DoorGuard, Incoming, PeerDoor};
use super::super::links::{Arrival, BoxedStream, Doorway, Links};
use super::super::roster::{Me, Roster};
use super::super::tls::PeerSecurity;
use crate::data_folder::ClusterId;
use crate::raft_types::Member;
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A clone is another handle to the same network.
#[derive(Clone, Default)]
pub(super) struct Net {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    doors: BTreeMap<u64, mpsc::UnboundedSender<Arrival>>,
    /// From one node to another.
    ways: BTreeMap<(u64, u64), Arc<Way>>,
}

/// What befalls the connections that one node makes to another.
pub(super) struct Way {
    /// New connections don't come about, and bytes vanish, in both directions.
    is_silent: AtomicBool,
    /// New connections are refused, as by a system without such a process.
    pub(super) is_refused: AtomicBool,
    /// Connections refused so.
    pub(super) refused: AtomicUsize,
    /// How many pieces vanish on their way back. Each one more lets the next piece vanish on each connection that
    /// there is.
    pub(super) lose_back: AtomicUsize,
    /// Bytes that come back are this late.
    pub(super) late_back_ms: AtomicU64,
    /// A connection that has carried more than this many bytes there breaks.
    pub(super) break_after: AtomicU64,
    /// Bytes that went there, on all connections.
    pub(super) bytes_there: AtomicU64,
    /// Connections made.
    pub(super) made: AtomicUsize,
    broken: Mutex<CancellationToken>,
}

impl Way {
    fn new() -> Self {
        Self {
            is_silent: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
            refused: AtomicUsize::new(0),
            lose_back: AtomicUsize::new(0),
            late_back_ms: AtomicU64::new(0),
            break_after: AtomicU64::new(u64::MAX),
            bytes_there: AtomicU64::new(0),
            made: AtomicUsize::new(0),
            broken: Mutex::default(),
        }
    }

    /// Ends the connections that there are.
    pub(super) fn break_all(&self) {
        std::mem::take(&mut *self.broken.lock().unwrap()).cancel();
    }
}

pub(super) fn address(node: u64) -> String {
    format!("n{node}:7402")
}

pub(super) fn member(node: u64) -> Member {
    Member { peer: address(node), ..Member::default() }
}

fn node_at(address: &str) -> u64 {
    address.trim_start_matches('n').trim_end_matches(":7402").parse().unwrap()
}

/// All tests are of one cluster.
pub(super) fn me(node_id: u64) -> Me {
    Me { cluster_id: "00112233445566778899aabbccddeeff".parse::<ClusterId>().unwrap(), node_id }
}

/// A roster of nodes 1 to 3.
pub(super) fn roster() -> Roster {
    let roster = Roster::default();
    roster.update((1..=3).map(|node| (node, member(node))).collect());
    roster.note_ids_used(3);
    roster
}

impl Net {
    pub(super) fn way(&self, from: u64, to: u64) -> Arc<Way> {
        let mut inner = self.inner.lock().unwrap();
        Arc::clone(inner.ways.entry((from, to)).or_insert_with(|| Arc::new(Way::new())))
    }

    /// A door for `node`.
    pub(super) fn door(&self, node: u64) -> PeerDoor {
        let (arrivals, arriving) = mpsc::unbounded_channel();
        self.inner.lock().unwrap().doors.insert(node, arrivals);
        let links = NodeLinks { net: self.clone(), node };
        PeerDoor::new(Box::new(NodeDoor(arriving)), Arc::new(links), PeerSecurity::Plain)
    }

    /// A way out for `node`, which has no door.
    pub(super) fn dialer(&self, node: u64) -> Dialer {
        let links = NodeLinks { net: self.clone(), node };
        Dialer::new(Arc::new(links), PeerSecurity::Plain, me(node), roster())
    }

    /// A door for `node` behind which a test answers.
    pub(super) fn scripted(&self, node: u64) -> (mpsc::Receiver<Incoming>, DoorGuard) {
        let (incoming, taken) = mpsc::channel(16);
        let guard = self.door(node).open(me(node), roster(), member(node), incoming);
        (taken, guard)
    }

    /// Nothing gets from one to the other any more, and neither notices.
    pub(super) fn part(&self, one: u64, other: u64) {
        for way in [self.way(one, other), self.way(other, one)] {
            way.is_silent.store(true, Relaxed);
        }
    }

    /// Connections can be made again. Those from before are gone: bytes of them are lost.
    pub(super) fn join(&self, one: u64, other: u64) {
        for way in [self.way(one, other), self.way(other, one)] {
            way.is_silent.store(false, Relaxed);
            way.break_all();
        }
    }
}

struct NodeDoor(mpsc::UnboundedReceiver<Arrival>);

impl Doorway for NodeDoor {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Arrival>> {
        Box::pin(async move {
            match self.0.recv().await {
                Some(arrival) => Ok(arrival),
                None => std::future::pending().await,
            }
        })
    }
}

struct NodeLinks {
    net: Net,
    node: u64,
}

impl Links for NodeLinks {
    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxedStream>> {
        Box::pin(async move {
            let to = node_at(address);
            let way = self.net.way(self.node, to);
            if way.is_silent.load(Relaxed) {
                return std::future::pending().await;
            }
            if way.is_refused.load(Relaxed) {
                way.refused.fetch_add(1, Relaxed);
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let door = self.net.inner.lock().unwrap().doors.get(&to).cloned();
            let door = door.ok_or(io::ErrorKind::ConnectionRefused)?;
            let ((near, near_end), (far_end, far)) =
                (tokio::io::duplex(64 << 10), tokio::io::duplex(64 << 10));
            let arrival = Arrival { stream: Box::new(far), from: format!("n{}", self.node) };
            door.send(arrival).map_err(|_| io::ErrorKind::ConnectionRefused)?;
            way.made.fetch_add(1, Relaxed);
            let broken = way.broken.lock().unwrap().clone().child_token();
            let (there, back) = (Pump::new(&way, &broken), Pump::new(&way, &broken));
            let (near_read, near_write) = tokio::io::split(near_end);
            let (far_read, far_write) = tokio::io::split(far_end);
            tokio::spawn(there.run(near_read, far_write, Direction::There));
            tokio::spawn(back.run(far_read, near_write, Direction::Back));
            Ok(Box::new(near) as BoxedStream)
        })
    }
}

#[derive(PartialEq, Eq)]
enum Direction {
    There,
    Back,
}

struct Pump {
    way: Arc<Way>,
    lost_before: usize,
    broken: CancellationToken,
}

impl Pump {
    fn new(way: &Arc<Way>, broken: &CancellationToken) -> Self {
        Self { way: Arc::clone(way), lost_before: way.lose_back.load(Relaxed), broken: broken.clone() }
    }

    /// Carries bytes in one direction until either end is gone.
    async fn run(
        self,
        mut from: ReadHalf<DuplexStream>,
        mut to: WriteHalf<DuplexStream>,
        direction: Direction,
    ) {
        let _breaks_both = self.broken.clone().drop_guard();
        let (mut carried, mut lost) = (0, self.lost_before);
        let mut piece = vec![0; 64 << 10];
        let carry = async {
            while let Ok(bytes @ 1..) = from.read(&mut piece).await {
                let way = &self.way;
                if direction == Direction::There {
                    carried += bytes as u64;
                    way.bytes_there.fetch_add(bytes as u64, Relaxed);
                    if carried > way.break_after.load(Relaxed) {
                        return;
                    }
                } else {
                    match way.late_back_ms.load(Relaxed) {
                        0 => {}
                        late => tokio::time::sleep(Duration::from_millis(late)).await,
                    }
                    if lost < way.lose_back.load(Relaxed) {
                        lost += 1;
                        continue;
                    }
                }
                if !way.is_silent.load(Relaxed) && to.write_all(&piece[..bytes]).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = self.broken.cancelled() => {}
            () = carry => {}
        }
    }
}
