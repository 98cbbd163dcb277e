//! Members that are too far behind for entries.

use super::super::door::{DoorGuard, Incoming};
use super::super::frame::{Frame, Frames};
use super::super::handshake::Purpose;
use super::super::raft_client::{Asks, PeerNetworks};
use super::super::snapshot_link::{
    ANSWER, Answer, HalfReceived, OFFER, Offer, PIECE_BYTES, WINDOW_BYTES, offset_and_bytes, piece,
};
use super::cluster::{Cluster, ELECTION_MS, Node, until};
use super::net::{Net, address, member};
use crate::raft_types::{LogId, Snapshot, TypeConfig, Vote};
use openraft::errors::{ReplicationClosed, StreamingError};
use openraft::impls::leader_id_std::LeaderId;
use openraft::network::{NetSnapshot, RPCOption, RaftNetworkFactory};
use openraft::raft::SnapshotResponse;
use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

type Sent = Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>>;

fn vote(term: u64, node: u64) -> Vote {
    Vote { leader_id: LeaderId { term, voted_for: node }, committed: true }
}

/// Node 2, alone, with a snapshot of some MiB.
async fn source(net: &Net, leases: u64) -> (Node, Snapshot) {
    let node = Node::start(net, 2).await;
    node.raft.initialize(BTreeMap::from([(2, member(2))])).await.unwrap();
    until("it leads alone", || node.leader() == Some(2)).await;
    node.fill(leases).await;
    node.snapshot_and_purge().await;
    let file = node.host.snapshots.newest().unwrap();
    let snapshot = Snapshot { meta: file.meta().clone(), snapshot: file };
    (node, snapshot)
}

/// Sends to node 1 as the library would.
async fn send(
    net: &Net,
    vote: Vote,
    snapshot: &Snapshot,
    cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
) -> Sent {
    let dialer = net.dialer(2);
    let mut networks = PeerNetworks::new(dialer.clone(), Asks::new(dialer));
    let mut client = networks.new_snapshot_client(1, &member(1)).await;
    client.full_snapshot(vote, snapshot.clone(), cancel, RPCOption::new(Duration::from_millis(200))).await
}

fn bytes_there(net: &Net) -> u64 {
    net.way(2, 1).bytes_there.load(Relaxed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_far_behind_gets_a_snapshot_in_pieces_and_then_entries() {
    let cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let [behind, other] = cluster.others(leader);
    for peer in [leader.id, other.id] {
        cluster.net.part(behind.id, peer);
    }
    leader.fill(5_000).await;
    leader.snapshot_and_purge().await;
    for peer in [leader.id, other.id] {
        cluster.net.join(behind.id, peer);
    }
    let index = leader.write(Vec::new()).await;
    cluster.all_applied(index).await;
    cluster.same_state();
    let received = behind.host.snapshots.newest().unwrap();
    assert_eq!(*received.meta(), *leader.host.snapshots.newest().unwrap().meta());
    assert!(received.bytes() > WINDOW_BYTES, "{} bytes", received.bytes());
    assert_eq!(behind.came_in(leader.id, Purpose::Snapshot), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_that_is_cut_again_and_again_goes_on_where_it_was() {
    let cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let [behind, other] = cluster.others(leader);
    for peer in [leader.id, other.id] {
        cluster.net.part(behind.id, peer);
    }
    leader.fill(5_000).await;
    leader.snapshot_and_purge().await;
    let way = cluster.net.way(leader.id, behind.id);
    way.break_after.store(3 << 19, Relaxed);
    for peer in [leader.id, other.id] {
        cluster.net.join(behind.id, peer);
    }
    cluster.all_applied(leader.applied()).await;
    cluster.same_state();
    let bytes = behind.host.snapshots.newest().unwrap().bytes();
    let connections = behind.came_in(leader.id, Purpose::Snapshot) as u64;
    // Each connection brings at least one whole piece, and the last answer may get lost.
    assert!(connections >= 3, "{connections}");
    assert!(connections <= bytes / PIECE_BYTES as u64 + 2, "{connections} connections for {bytes} bytes");
}

/// Case C47: the install takes longer than any time limit between two nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_install_that_takes_long_is_not_thrown_away() {
    let net = Net::default();
    let (_source, snapshot) = source(&net, 100).await;
    let node = Node::start(&net, 1).await;
    let machine = std::sync::Arc::clone(&node.machine);
    // Who looks at the state holds the install up.
    let looking =
        tokio::task::spawn_blocking(move || machine.view(|_| std::thread::sleep(Duration::from_secs(4))));
    let begun = Instant::now();
    let sent = send(&net, vote(5, 2), &snapshot, pending()).await;
    assert_eq!(sent.unwrap().vote, vote(5, 2));
    assert!(begun.elapsed() > Duration::from_secs(3), "{:?}", begun.elapsed());
    looking.await.unwrap();
    assert_eq!(node.applied(), snapshot.meta.last_log_id.unwrap().index);
    assert_eq!(node.came_in(2, Purpose::Snapshot), 1);
}

/// Case C47: the install came to its end, only the sender never heard of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_is_there_already_is_not_sent_again() {
    let net = Net::default();
    let (_source, snapshot) = source(&net, 2_000).await;
    let node = Node::start(&net, 1).await;
    send(&net, vote(5, 2), &snapshot, pending()).await.unwrap();
    let before = bytes_there(&net);
    until("it is applied", || node.applied() == snapshot.meta.last_log_id.unwrap().index).await;
    send(&net, vote(5, 2), &snapshot, pending()).await.unwrap();
    assert!(bytes_there(&net) - before < PIECE_BYTES as u64);
    // Nor by the next leader, which has yet to be accepted.
    assert_eq!(send(&net, vote(6, 2), &snapshot, pending()).await.unwrap().vote, vote(6, 2));
    assert!(bytes_there(&net) - before < PIECE_BYTES as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_time_is_over_hears_so_before_it_sends_a_piece() {
    let net = Net::default();
    let (_source, snapshot) = source(&net, 2_000).await;
    let node = Node::start(&net, 1).await;
    let before = bytes_there(&net);
    let newer = openraft::raft::VoteRequest::new(vote(9, 3), snapshot.meta.last_log_id);
    node.raft.vote(newer).await.unwrap();
    until("it knows the newer term", || node.term() == 9).await;
    let response = send(&net, vote(5, 2), &snapshot, pending()).await.unwrap();
    assert_eq!(response.vote.leader_id.term, 9);
    assert!(bytes_there(&net) - before < PIECE_BYTES as u64);
}

/// The node goes on, and the sender learns what is wrong there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_would_fill_the_disk_is_refused_with_words_and_stops_nobody() {
    let net = Net::default();
    let (_source, snapshot) = source(&net, 2_000).await;
    let before = bytes_there(&net);
    let node = Node::start_with(&net, 1, ELECTION_MS, HalfReceived::with_reserve(1 << 60)).await;
    let Err(StreamingError::Unreachable(error)) = send(&net, vote(5, 2), &snapshot, pending()).await else {
        panic!("it was taken");
    };
    assert!(error.to_string().contains("make room there"), "{error}");
    assert!(bytes_there(&net) - before < PIECE_BYTES as u64);
    assert!(node.raft.is_initialized().await.is_ok());
    assert!(is_tidy(&node));
}

/// Nothing half received is left.
fn is_tidy(node: &Node) -> bool {
    let files = std::fs::read_dir(node.folder.path().join("snapshots")).unwrap();
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).all(|name| !name.ends_with(".tmp"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_isn_t_what_was_offered_is_refused_with_words() {
    let net = Net::default();
    let (_source, mut snapshot) = source(&net, 100).await;
    let node = Node::start(&net, 1).await;
    snapshot.meta.last_log_id = Some(LogId::new_term_index(1, 1_000));
    let Err(StreamingError::Unreachable(error)) = send(&net, vote(5, 2), &snapshot, pending()).await else {
        panic!("it was taken");
    };
    assert!(error.to_string().contains("index: 1000"), "{error}");
    assert_eq!(node.applied(), 0);
    assert!(is_tidy(&node));
}

/// Of a later term than the leader's own: the library would stop the node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_its_sender_can_t_have_is_refused() {
    let net = Net::default();
    let (_source, snapshot) = source(&net, 100).await;
    let node = Node::start(&net, 1).await;
    assert!(send(&net, vote(5, 3), &snapshot, pending()).await.is_err(), "node 2 speaks for node 3");
    assert!(send(&net, vote(0, 2), &snapshot, pending()).await.is_err(), "it has entries of term 1");
    assert!(node.raft.is_initialized().await.is_ok());
    assert_eq!(node.term(), 0);
}

/// The old connection is dead, and this end doesn't know yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_connection_goes_on_with_what_an_older_one_brought() {
    let net = Net::default();
    let (_source, snapshot) = source(&net, 3_000).await;
    let node = Node::start(&net, 1).await;
    let mut old = net.dialer(2).connect(1, &address(1), Purpose::Snapshot).await.unwrap().into_frames();
    let offer = Offer { vote: vote(5, 2), meta: snapshot.meta.clone(), bytes: snapshot.snapshot.bytes() };
    old.writer.send(&Frame::holding(OFFER, &offer).unwrap()).await.unwrap();
    assert_eq!(answer(&mut old).await, Answer::From(0));
    let first = snapshot.snapshot.read_at(0, PIECE_BYTES).unwrap();
    old.writer.send(&piece(0, &first)).await.unwrap();
    assert_eq!(answer(&mut old).await, Answer::Taken(PIECE_BYTES as u64));

    let before = bytes_there(&net);
    send(&net, vote(5, 2), &snapshot, pending()).await.unwrap();
    assert_eq!(node.applied(), snapshot.meta.last_log_id.unwrap().index);
    let sent = bytes_there(&net) - before;
    assert!(sent < snapshot.snapshot.bytes() - PIECE_BYTES as u64 / 2, "{sent} bytes");
    assert!(is_tidy(&node));
    drop(old);
}

/// The next answer but `Working`.
async fn answer(connection: &mut Frames) -> Answer {
    loop {
        let frame = connection.reader.read(1 << 20).await.unwrap().unwrap();
        assert_eq!(frame.kind, ANSWER);
        match frame.value().unwrap() {
            Answer::Working => {}
            answer => return answer,
        }
    }
}

async fn say(connection: &mut Frames, answer: Answer) {
    connection.writer.send(&Frame::holding(ANSWER, &answer).unwrap()).await.unwrap();
}

/// Node 1, where the test answers.
struct Scripted {
    net: Net,
    snapshot: Snapshot,
    taken: mpsc::Receiver<Incoming>,
    _door: DoorGuard,
    _source: Node,
}

impl Scripted {
    async fn new(leases: u64) -> Self {
        let net = Net::default();
        let (source, snapshot) = source(&net, leases).await;
        let (taken, door) = net.scripted(1);
        Self { net, snapshot, taken, _door: door, _source: source }
    }
}

async fn accept(taken: &mut mpsc::Receiver<Incoming>) -> (Frames, Offer) {
    let incoming = taken.recv().await.unwrap();
    assert_eq!(incoming.purpose, Purpose::Snapshot);
    let mut connection = incoming.connection.into_frames();
    let offer = connection.reader.read(1 << 20).await.unwrap().unwrap();
    assert_eq!(offer.kind, OFFER);
    (connection, offer.value().unwrap())
}

/// Case C47.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sender_waits_for_as_long_as_it_hears_that_the_member_works() {
    let mut world = Scripted::new(100).await;
    let sending = send(&world.net, vote(5, 2), &world.snapshot, pending());
    let answering = async {
        let (mut other_end, offer) = accept(&mut world.taken).await;
        for _ in 0..8 {
            sleep(Duration::from_millis(500)).await;
            say(&mut other_end, Answer::Working).await;
        }
        say(&mut other_end, Answer::From(offer.bytes)).await;
        say(&mut other_end, Answer::Done(SnapshotResponse::new(vote(5, 2)))).await;
        other_end
    };
    let (sent, _) = tokio::join!(sending, answering);
    assert_eq!(sent.unwrap().vote, vote(5, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sender_gives_up_a_member_that_is_silent_for_two_seconds() {
    let mut world = Scripted::new(100).await;
    let begun = Instant::now();
    let sending = send(&world.net, vote(5, 2), &world.snapshot, pending());
    let (sent, _other_end) = tokio::join!(sending, accept(&mut world.taken));
    assert!(matches!(sent, Err(StreamingError::Unreachable(_))), "{sent:?}");
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(2) && took < Duration::from_secs(4), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sender_is_at_most_a_window_ahead() {
    let mut world = Scripted::new(6_000).await;
    let bytes = world.snapshot.snapshot.bytes();
    assert!(bytes > WINDOW_BYTES + PIECE_BYTES as u64);
    let sending = send(&world.net, vote(5, 2), &world.snapshot, pending());
    let answering = async {
        let (mut other_end, _) = accept(&mut world.taken).await;
        say(&mut other_end, Answer::From(0)).await;
        let mut came = 0;
        while came < bytes {
            let next = timeout(Duration::from_millis(300), other_end.reader.read(2 << 20));
            let Ok(frame) = next.await else { break };
            let (offset, piece) = offset_and_bytes(&frame.unwrap().unwrap()).unwrap();
            assert_eq!(offset, came);
            came += piece.len() as u64;
        }
        say(&mut other_end, Answer::Failed("enough".to_owned())).await;
        came
    };
    let (sent, came) = tokio::join!(sending, answering);
    assert_eq!(came, WINDOW_BYTES);
    let Err(StreamingError::Unreachable(error)) = sent else { panic!("{sent:?}") };
    assert!(error.to_string().contains("enough"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_that_is_not_wanted_any_more_ends_at_once() {
    let mut world = Scripted::new(100).await;
    let cancel = async {
        sleep(Duration::from_millis(100)).await;
        ReplicationClosed::new("not wanted any more")
    };
    let begun = Instant::now();
    let sending = send(&world.net, vote(5, 2), &world.snapshot, cancel);
    let (sent, _other_end) = tokio::join!(sending, accept(&mut world.taken));
    assert!(matches!(sent, Err(StreamingError::Closed(_))), "{sent:?}");
    assert!(begun.elapsed() < Duration::from_secs(1));
}
