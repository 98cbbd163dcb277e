//! Both sides of the handshake, over streams in memory.

use super::lobby::SHAKING_MAX;
use super::places::{PLACES_MAX, PLACES_OF_ONE_MAX};
use super::*;
use crate::transport::dial::{DialError, Doing, Who};
use crate::transport::frame::{BODY_BYTES_MAX, Frame, Frames};
use crate::transport::handshake::{self, Answer, Hello, RefusalCode};
use crate::transport::links::BoxedStream;
use crate::transport::roster::Standing;
use crate::transport::testing::{Ca, Made, Wire, wire};
use crate::transport::tls::PeerTls;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout};

const OURS: &str = "0000000000000000000000000000000a";
const OTHERS: &str = "0000000000000000000000000000000b";

fn node(node_id: u64) -> Me {
    Me { cluster_id: OURS.parse().unwrap(), node_id }
}

fn member(peer: &str) -> Member {
    Member { peer: peer.to_owned(), ..Member::default() }
}

/// Nodes 1 and 2 are members, 3 was removed.
fn roster() -> Roster {
    let roster = Roster::default();
    roster.update(BTreeMap::from([(1, member("one:7402")), (2, member("two:7402"))]));
    roster.note_ids_used(3);
    assert_eq!(roster.standing(3), Standing::Removed);
    roster
}

/// Node 1 with its door open.
struct Open {
    wire: Wire,
    incoming: mpsc::Receiver<Incoming>,
    guard: DoorGuard,
}

impl Open {
    fn plain() -> Self {
        Self::with(PeerSecurity::Plain)
    }

    fn with(security: PeerSecurity) -> Self {
        let (wire, end) = wire();
        let (to, incoming) = mpsc::channel(1024);
        let door = PeerDoor::new(Box::new(end), wire.links(), security);
        let guard = door.open(node(1), roster(), member("one:7402"), to);
        Self { wire, incoming, guard }
    }

    fn dialer(&self, me: Me) -> Dialer {
        self.dialer_with(me, PeerSecurity::Plain)
    }

    fn dialer_with(&self, me: Me, security: PeerSecurity) -> Dialer {
        Dialer::new(self.wire.links(), security, me, Roster::default())
    }

    async fn refusal(&self, me: Me, to: u64) -> (RefusalCode, String) {
        code_and_text(self.dialer(me).connect(to, "one:7402", Purpose::Ask).await)
    }
}

fn code_and_text<T>(result: Result<T, DialError>) -> (RefusalCode, String) {
    match result {
        Err(DialError::Refused { code, text, address }) => {
            assert_eq!(address, "one:7402");
            (code, text)
        }
        Err(other) => panic!("refused otherwise: {other}"),
        Ok(_) => panic!("let in"),
    }
}

fn words<T>(result: Result<T, DialError>) -> String {
    result.map(drop).unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_member_is_let_in_for_each_purpose_and_no_byte_is_lost() {
    let mut open = Open::plain();
    let dialer = open.dialer(node(2));
    for purpose in [Purpose::Append, Purpose::Ask, Purpose::Snapshot, Purpose::Calls] {
        let mut here = dialer.connect(1, "one:7402", purpose).await.unwrap().into_stream();
        here.write_all(b"PRI * HTTP/2.0").await.unwrap();
        let incoming = open.incoming.recv().await.unwrap();
        assert_eq!((incoming.from, incoming.purpose), (2, purpose));
        let mut there = incoming.connection.into_stream();
        let mut bytes = [0; 14];
        there.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"PRI * HTTP/2.0");
        there.write_all(b"SETTINGS").await.unwrap();
        here.read_exact(&mut bytes[..8]).await.unwrap();
        assert_eq!(&bytes[..8], b"SETTINGS");
    }
}

/// Case C86: data of another cluster is refused, with both names.
#[tokio::test(start_paused = true)]
async fn a_node_of_another_cluster_is_refused_with_both_ids() {
    let other = Me { cluster_id: OTHERS.parse().unwrap(), node_id: 2 };
    let (code, text) = Open::plain().refusal(other, 1).await;
    assert_eq!(code, RefusalCode::OtherCluster);
    assert!(
        text.starts_with(&format!("node 2 of cluster {OTHERS} calls node 1 of cluster {OURS}")),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_wants_another_node_is_told_who_is_here() {
    let (code, text) = Open::plain().refusal(node(2), 4).await;
    assert_eq!(code, RefusalCode::WrongNode);
    assert_eq!(text, "node 2 wants node 4 and this is node 1: check --advertise-peer of both");
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_this_node_is_refused() {
    let (code, text) = Open::plain().refusal(node(1), 1).await;
    assert_eq!(code, RefusalCode::WrongNode);
    assert!(text.starts_with("two nodes say that they are node 1"), "{text}");
}

/// Case C40: a removed node is refused, and told, so that it stops trying.
#[tokio::test(start_paused = true)]
async fn a_removed_node_is_refused_and_knows_it_then() {
    let open = Open::plain();
    let dialer = open.dialer(node(3));
    let (code, text) = code_and_text(dialer.connect(1, "one:7402", Purpose::Ask).await);
    assert_eq!(code, RefusalCode::Removed);
    assert!(text.starts_with(&format!("node 3 was removed from cluster {OURS}")), "{text}");
    assert!(dialer.roster().is_removed());
}

#[tokio::test(start_paused = true)]
async fn a_node_newer_than_all_that_are_known_is_let_in() {
    let mut open = Open::plain();
    open.dialer(node(4)).connect(1, "one:7402", Purpose::Append).await.unwrap();
    assert_eq!(open.incoming.recv().await.unwrap().from, 4);
}

#[tokio::test(start_paused = true)]
async fn a_release_too_new_and_a_purpose_too_new_are_refused_with_what_to_do() {
    let open = Open::plain();
    for (hello, expected) in [
        (
            Hello { version_min: 2, version_max: 3, ..Hello::new(node(2), Some(1), Purpose::Ask) },
            format!(
                "node 2 of cluster {OURS} speaks versions 2 to 3 of the peer protocol, and the node it calls 1 to 1: \
                 update the older one"
            ),
        ),
        (
            Hello { purpose: "gossip".to_owned(), ..Hello::new(node(2), Some(1), Purpose::Ask) },
            "the release of the node called knows no purpose \"gossip\": update it".to_owned(),
        ),
    ] {
        let mut stream = open.wire.raw();
        handshake::write(&mut stream, &hello).await.unwrap();
        let Answer::Refused(refusal) = handshake::read(&mut stream).await.unwrap() else {
            panic!("let in");
        };
        assert_eq!((refusal.code(), refusal.text()), (RefusalCode::Version, expected));
    }
}

#[tokio::test(start_paused = true)]
async fn one_node_has_a_bounded_part_of_the_places_and_gets_them_back() {
    let mut open = Open::plain();
    let dialer = open.dialer(node(2));
    let mut kept = Vec::new();
    for _ in 0..PLACES_OF_ONE_MAX {
        kept.push(dialer.connect(1, "one:7402", Purpose::Ask).await.unwrap());
    }
    let (code, text) = open.refusal(node(2), 1).await;
    assert_eq!((code, text.as_str()), (RefusalCode::Busy, "node 2 has 64 connections here already"));
    open.dialer(node(4)).connect(1, "one:7402", Purpose::Ask).await.unwrap();

    drop(open.incoming.recv().await.unwrap());
    dialer.connect(1, "one:7402", Purpose::Ask).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn there_are_so_many_places_in_all() {
    let open = Open::plain();
    for at in 0..PLACES_MAX {
        let node_id = 4 + (at / PLACES_OF_ONE_MAX) as u64;
        open.dialer(node(node_id)).connect(1, "one:7402", Purpose::Ask).await.unwrap();
    }
    let (code, text) = open.refusal(node(2), 1).await;
    assert_eq!((code, text.as_str()), (RefusalCode::Busy, "256 connections of nodes are open here already"));
}

/// The receiver of connections stands still: one gets an answer in time all the same.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_behind_says_so() {
    let (wire, end) = wire();
    let (to, _incoming) = mpsc::channel(1);
    let door = PeerDoor::new(Box::new(end), wire.links(), PeerSecurity::Plain);
    let dialer = door.dialer(node(2), Roster::default());
    let _guard = door.open(node(1), roster(), member("one:7402"), to);
    dialer.connect(1, "one:7402", Purpose::Ask).await.unwrap();
    let (code, _) = code_and_text(dialer.connect(1, "one:7402", Purpose::Ask).await);
    assert_eq!(code, RefusalCode::Busy);
}

#[tokio::test(start_paused = true)]
async fn closing_the_door_ends_what_came_through_it_and_takes_no_more() {
    let mut open = Open::plain();
    let mut here = open.dialer(node(2)).connect(1, "one:7402", Purpose::Calls).await.unwrap().into_stream();
    let there = open.incoming.recv().await.unwrap().connection.into_stream();
    // Each half waits in a task of its own, as with frames.
    let (mut reader, mut writer) = tokio::io::split(there);
    let reading = tokio::spawn(async move { reader.read(&mut [0]).await });
    let writing = tokio::spawn(async move { while writer.write_all(&[0; 1024]).await.is_ok() {} });
    sleep(Duration::from_secs(5)).await;
    drop(open.guard);
    let within = Duration::from_secs(1);
    let read = timeout(within, reading).await.unwrap().unwrap();
    assert_eq!(read.unwrap_err().to_string(), "this node's peer door is closed");
    timeout(within, writing).await.unwrap().unwrap();

    let mut rest = Vec::new();
    here.read_to_end(&mut rest).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_is_there_is_answered_to_nodes_of_any_cluster() {
    let open = Open::plain();
    let other = Me { cluster_id: OTHERS.parse().unwrap(), node_id: 9 };
    let who = open.dialer(other).who("one:7402", 10).await.unwrap();
    let expected = Who::Node { cluster_id: OURS.parse().unwrap(), node_id: 1, member: member("one:7402") };
    assert_eq!(who, expected);

    let (code, text) = code_and_text(open.dialer(other).invite("one:7402", 10).await);
    assert_eq!((code, text), (RefusalCode::HasCluster, format!("it is node 1 of cluster {OURS} already")));
}

/// A node of no cluster, and the way to it.
fn new_node(security: PeerSecurity) -> (PeerDoor, Wire) {
    let (wire, end) = wire();
    (PeerDoor::new(Box::new(end), wire.links(), security), wire)
}

#[tokio::test(start_paused = true)]
async fn a_node_of_no_cluster_says_who_it_is_and_takes_one_invitation() {
    let (mut door, wire) = new_node(PeerSecurity::Plain);
    let dialer = Dialer::new(wire.links(), PeerSecurity::Plain, node(1), roster());
    let me = member("new:7402");
    let inviting = async {
        assert_eq!(dialer.who("one:7402", 4).await.unwrap(), Who::New { member: member("new:7402") });
        let (code, _) = code_and_text(dialer.connect(4, "one:7402", Purpose::Append).await);
        assert_eq!(code, RefusalCode::NoCluster);
        let (first, second) = tokio::join!(dialer.invite("one:7402", 4), dialer.invite("one:7402", 5));
        first.unwrap();
        second.unwrap_err();
    };
    let taking = async {
        let invited = door.invitation(&me).await;
        assert_eq!((invited.cluster_id, invited.node_id), (OURS.parse().unwrap(), 4));
        // It has to be written down first.
        sleep(Duration::from_secs(9)).await;
        invited.accept();
    };
    tokio::join!(inviting, taking);

    // Whoever comes later meets a member.
    let guard = door.open(node(4), roster(), me.clone(), mpsc::channel(1).0);
    let who = dialer.who("one:7402", 5).await.unwrap();
    assert_eq!(who, Who::Node { cluster_id: OURS.parse().unwrap(), node_id: 4, member: me });
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn an_inviter_waits_ten_seconds_and_learns_when_the_place_is_not_taken() {
    let (mut door, wire) = new_node(PeerSecurity::Plain);
    let dialer = Dialer::new(wire.links(), PeerSecurity::Plain, node(1), roster());
    let me = member("new:7402");

    let (refused, ()) =
        tokio::join!(dialer.invite("one:7402", 4), async { drop(door.invitation(&me).await) });
    assert!(matches!(refused, Err(DialError::Broken { doing: Doing::Invite, .. })), "{refused:?}");

    let began = Instant::now();
    let (slow, invited) = tokio::join!(dialer.invite("one:7402", 4), door.invitation(&me));
    assert_eq!(words(slow), "invite the node at one:7402: no answer in time");
    assert!(began.elapsed() < Duration::from_secs(12));
    invited.accept();
}

#[tokio::test(start_paused = true)]
async fn an_invitation_to_a_place_that_cannot_be_is_refused() {
    let (mut door, wire) = new_node(PeerSecurity::Plain);
    let dialer = Dialer::new(wire.links(), PeerSecurity::Plain, node(1), roster());
    let me = member("new:7402");
    tokio::select! {
        _ = door.invitation(&me) => panic!("taken up"),
        refused = dialer.invite("one:7402", 0) => assert_eq!(code_and_text(refused).0, RefusalCode::Other),
    }
}

/// How long until the door closes a raw stream.
async fn until_closed(mut stream: BoxedStream) -> Duration {
    let began = Instant::now();
    let mut rest = Vec::new();
    timeout(Duration::from_secs(60), stream.read_to_end(&mut rest)).await.unwrap().ok();
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn silence_and_a_byte_a_second_end_in_a_second() {
    let open = Open::plain();
    assert_eq!(until_closed(open.wire.raw()).await.as_millis(), 1000);

    let (reader, mut writer) = tokio::io::split(open.wire.raw());
    let dripping = async {
        for byte in b"kunci-p\n" {
            writer.write_all(&[*byte]).await.ok();
            sleep(Duration::from_secs(1)).await;
        }
    };
    let reader: BoxedStream = Box::new(tokio::io::join(reader, tokio::io::sink()));
    tokio::select! {
        lasted = until_closed(reader) => assert!(lasted <= Duration::from_secs(2), "{lasted:?}"),
        () = dripping => panic!("it goes on"),
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_ends_at_once() {
    let open = Open::plain();
    let mut stream = open.wire.raw();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: one:7402\r\n\r\n").await.unwrap();
    assert!(until_closed(stream).await < Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn what_answers_with_garbage_or_not_at_all_is_told_in_bounded_time() {
    let (wire, mut end) = wire();
    let dialer = Dialer::new(wire.links(), PeerSecurity::Plain, node(2), Roster::default());
    let answering = async {
        let mut stream = end.accept().await.unwrap().stream;
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n").await.unwrap();
        stream
    };
    let (answered, _stream) = tokio::join!(dialer.connect(1, "one:7402", Purpose::Ask), answering);
    assert_eq!(
        words(answered),
        r#"one:7402: it doesn't speak kunci's peer protocol: it begins with "HTTP/1.1""#
    );

    let began = Instant::now();
    let silent = dialer.connect(1, "one:7402", Purpose::Ask).await;
    assert_eq!(words(silent), "shake hands with one:7402: no answer in time");
    assert_eq!(began.elapsed().as_millis(), 1000);
}

/// Strangers that say nothing don't keep a member out, wherever it stands among them.
#[tokio::test(start_paused = true)]
async fn a_flood_of_silent_connections_does_not_keep_a_member_out() {
    let open = Open::plain();
    let mut flood: Vec<_> = (0..300).map(|_| open.wire.raw()).collect();
    let dialer = open.dialer(node(2));
    let member = dialer.connect(1, "one:7402", Purpose::Append);
    let more = async { flood.extend((0..300).map(|_| open.wire.raw())) };
    let (connected, ()) = tokio::join!(member, more);
    connected.unwrap();
}

/// Nor do those that say half a word: the member gets in at one of its tries.
#[tokio::test(start_paused = true)]
async fn a_full_lobby_of_slow_handshakes_makes_room() {
    let open = Open::plain();
    let mut slow = Vec::new();
    for _ in 0..SHAKING_MAX {
        let mut stream = open.wire.raw();
        stream.write_all(b"kunci").await.unwrap();
        slow.push(stream);
    }
    let began = Instant::now();
    open.dialer(node(2)).connect(1, "one:7402", Purpose::Append).await.unwrap();
    assert!(began.elapsed() <= Duration::from_millis(300), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn running_out_of_descriptors_neither_spins_nor_parks_the_door() {
    let open = Open::plain();
    for _ in 0..5 {
        // 24: too many open files.
        open.wire.fail(io::Error::from_raw_os_error(24));
    }
    let began = Instant::now();
    open.dialer(node(2)).connect(1, "one:7402", Purpose::Append).await.unwrap();
    assert_eq!(began.elapsed().as_millis(), 500);
}

fn tls(ca: &Ca, node_id: u64) -> PeerSecurity {
    PeerSecurity::Tls(ca.load(Made::for_node(node_id)).unwrap())
}

#[tokio::test(start_paused = true)]
async fn with_tls_each_side_is_who_its_certificate_says() {
    let ca = Ca::new();
    let mut open = Open::with(tls(&ca, 1));
    let mut here = open
        .dialer_with(node(2), tls(&ca, 2))
        .connect(1, "one:7402", Purpose::Calls)
        .await
        .unwrap()
        .into_stream();
    here.write_all(b"PRI").await.unwrap();
    here.flush().await.unwrap();
    let incoming = open.incoming.recv().await.unwrap();
    assert_eq!(incoming.from, 2);
    let mut bytes = [0; 3];
    incoming.connection.into_stream().read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"PRI");
}

/// More than any buffer holds, both ways at once: neither direction waits for the other.
#[tokio::test(start_paused = true)]
async fn frames_go_both_ways_over_tls() {
    let ca = Ca::new();
    let mut open = Open::with(tls(&ca, 1));
    let dialer = open.dialer_with(node(2), tls(&ca, 2));
    let here = dialer.connect(1, "one:7402", Purpose::Append).await.unwrap();
    let there = open.incoming.recv().await.unwrap().connection;
    let exchange = async |connection: Connection| {
        let Frames { mut reader, mut writer } = connection.into_frames();
        let frame = Frame { kind: 1, body: vec![7; 1 << 20].into() };
        let sending = async {
            for _ in 0..4 {
                writer.send(&frame).await.unwrap();
            }
        };
        let receiving = async {
            for _ in 0..4 {
                assert_eq!(reader.read(BODY_BYTES_MAX).await.unwrap().as_ref(), Some(&frame));
            }
        };
        tokio::join!(sending, receiving);
    };
    let both = async { tokio::join!(exchange(here), exchange(there)) };
    timeout(Duration::from_secs(10), both).await.unwrap();
}

/// A node can't act as another one.
#[tokio::test(start_paused = true)]
async fn a_certificate_of_another_node_is_refused_on_both_sides() {
    let ca = Ca::new();
    let open = Open::with(tls(&ca, 1));
    let as_two = open.dialer_with(node(2), tls(&ca, 7));
    let (code, text) = code_and_text(as_two.connect(1, "one:7402", Purpose::Ask).await);
    assert_eq!(code, RefusalCode::Certificate);
    assert_eq!(
        text,
        format!(
            "node 2 of cluster {OURS}: its certificate is for node-7.kunci, and as node 2 it needs one for node-2.kunci"
        )
    );

    let wants_five = open.dialer_with(node(2), tls(&ca, 2)).connect(5, "one:7402", Purpose::Ask).await;
    assert_eq!(
        words(wants_five),
        "one:7402: its certificate is for node-1.kunci, expected node-5.kunci: check the address, or give that node \
         the certificate of its own id"
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_node_with_tls_needs_the_certificate_of_its_future_id() {
    let ca = Ca::new();
    let (mut door, wire) = new_node(tls(&ca, 4));
    let dialer = Dialer::new(wire.links(), tls(&ca, 1), node(1), roster());
    let me = member("new:7402");
    let inviting = async {
        let wrong = words(dialer.who("one:7402", 5).await);
        assert!(wrong.contains("its certificate is for node-4.kunci, expected node-5.kunci"), "{wrong}");
        assert_eq!(dialer.who("one:7402", 4).await.unwrap(), Who::New { member: member("new:7402") });
        dialer.invite("one:7402", 4).await.unwrap();
    };
    let taking = async { door.invitation(&me).await.accept() };
    tokio::join!(inviting, taking);
}

#[tokio::test(start_paused = true)]
async fn nodes_of_two_cas_refuse_each_other_and_say_why() {
    let (ca, other) = (Ca::new(), Ca::new());
    let open = Open::with(tls(&ca, 1));
    let stranger = open.dialer_with(node(2), tls(&other, 2)).connect(1, "one:7402", Purpose::Ask).await;
    assert_eq!(
        words(stranger),
        format!(
            "one:7402: its certificate isn't made by the CA in {}: all nodes of a cluster need certificates of one CA",
            other.file().display()
        )
    );

    // It believes the right CA and shows a certificate of the other: its certificate is refused at the other end.
    let both = other.file().with_file_name("both.pem");
    let text = [std::fs::read(ca.file()).unwrap(), std::fs::read(other.file()).unwrap()].concat();
    std::fs::write(&both, text).unwrap();
    let half = PeerSecurity::Tls(other.load_believing(&both, Made::for_node(2)).unwrap());
    let refused = words(open.dialer_with(node(2), half).connect(1, "one:7402", Purpose::Ask).await);
    assert!(refused.starts_with("one:7402: it doesn't accept this node's certificate in "), "{refused}");
    assert!(refused.ends_with("it was made by another CA than that node's --peer-ca"), "{refused}");
}

/// A certificate that ran out while its node was running.
#[tokio::test(start_paused = true)]
async fn an_expired_certificate_is_refused_on_both_sides_and_both_say_so() {
    let ca = Ca::new();
    let (cert, key) = ca.make(Made { not_after_year: 2001, ..Made::for_node(1) });
    let expired = PeerSecurity::Tls(PeerTls::load_unchecked(&ca.file(), &cert, &key).unwrap());
    let open = Open::with(expired.clone());
    let called = words(open.dialer_with(node(2), tls(&ca, 2)).connect(1, "one:7402", Purpose::Ask).await);
    assert!(
        called.starts_with("one:7402: its certificate expired ") && called.contains(" days ago"),
        "{called}"
    );

    let open = Open::with(tls(&ca, 2));
    let calling = open.dialer_with(node(1), expired).connect(2, "one:7402", Purpose::Ask).await;
    assert_eq!(
        words(calling),
        format!(
            "one:7402: it doesn't accept this node's certificate in {}: by its clock it has expired or isn't valid \
             yet; renew it, or set the clock",
            cert.display()
        )
    );
}

#[tokio::test(start_paused = true)]
async fn plain_and_tls_tell_each_other_apart_at_once() {
    let ca = Ca::new();
    let began = Instant::now();
    let with_tls = Open::with(tls(&ca, 1));
    let (code, text) = with_tls.refusal(node(2), 1).await;
    assert_eq!(code, RefusalCode::Certificate);
    assert_eq!(
        text,
        "the peer door of this node takes TLS only: give the calling node --peer-ca, --peer-cert and --peer-key too"
    );

    let plain = Open::plain();
    let words = words(plain.dialer_with(node(2), tls(&ca, 2)).connect(1, "one:7402", Purpose::Ask).await);
    assert_eq!(
        words,
        "one:7402: this node talks TLS to its peers and what answers there doesn't: give that node --peer-ca, \
         --peer-cert and --peer-key too, or check the address"
    );
    assert!(began.elapsed() < Duration::from_millis(10));
}

/// Closing over unread bytes resets a TCP connection, and the peer may lose what it hasn't read yet.
#[tokio::test]
async fn over_tcp_a_refusal_reaches_a_peer_that_sent_more_than_was_read() {
    let door = PeerDoor::bind("127.0.0.1:0".parse().unwrap(), PeerSecurity::Plain).await.unwrap();
    let address = door.local_address().unwrap();
    let _guard = door.open(node(1), roster(), member("one:7402"), mpsc::channel(1).0);
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut record = vec![0x16, 3, 1];
    record.resize(16 << 10, 0);
    stream.write_all(&record).await.unwrap();
    sleep(Duration::from_millis(200)).await;

    let Answer::Refused(refusal) = handshake::read(&mut stream).await.unwrap() else {
        panic!("let in");
    };
    assert_eq!(refusal.code(), RefusalCode::Certificate);
    assert!(
        refusal.text().starts_with("it talks TLS and the peer door of this node doesn't"),
        "{}",
        refusal.text()
    );
}

/// The same over real sockets: nothing here depends on how memory behaves.
#[tokio::test]
async fn over_tcp_a_member_comes_in_beside_silent_strangers_and_refusals_arrive() {
    let ca = Ca::new();
    let door = PeerDoor::bind("127.0.0.1:0".parse().unwrap(), tls(&ca, 1)).await.unwrap();
    let address = door.local_address().unwrap().to_string();
    let dialer = |me, security| Dialer::new(Arc::new(TcpLinks::default()), security, me, Roster::default());
    let (to, mut incoming) = mpsc::channel(8);
    let guard = door.open(node(1), roster(), member("one:7402"), to);
    let mut strangers = Vec::new();
    for _ in 0..SHAKING_MAX + 8 {
        strangers.push(tokio::net::TcpStream::connect(&address).await.unwrap());
    }

    let mut stream =
        dialer(node(2), tls(&ca, 2)).connect(1, &address, Purpose::Calls).await.unwrap().into_stream();
    assert_eq!(incoming.recv().await.unwrap().from, 2);
    let plain = dialer(node(2), PeerSecurity::Plain).connect(1, &address, Purpose::Ask).await;
    assert!(matches!(plain, Err(DialError::Refused { code: RefusalCode::Certificate, .. })));
    let removed = dialer(node(3), tls(&ca, 3)).connect(1, &address, Purpose::Ask).await;
    assert!(matches!(removed, Err(DialError::Refused { code: RefusalCode::Removed, .. })));

    drop(guard);
    let mut rest = Vec::new();
    timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await.unwrap().ok();
    let nobody = dialer(node(2), tls(&ca, 2)).connect(1, &address, Purpose::Ask).await;
    assert!(matches!(nobody, Err(DialError::Broken { doing: Doing::Connect, .. })));
}
