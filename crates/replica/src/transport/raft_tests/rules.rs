//! What a node doesn't take from another, whatever is sent.

use super::super::frame::{Frame, Frames};
use super::super::handshake::Purpose;
use super::super::raft_frames::{APPEND, PRE_VOTE, PULSE, REFUSED, TRANSFER, VOTE, check_append, untag};
use super::cluster::Node;
use super::net::{Net, address, roster};
use crate::pulse::{Census, Pulse};
use crate::raft_types::{Entry, EntryBytes, LogId, Payload, TypeConfig, Vote};
use bytes::Bytes;
use openraft::impls::leader_id_std::LeaderId;
use openraft::raft::{AppendEntriesRequest, StreamAppendResult, TransferLeaderRequest, VoteRequest};
use std::time::Duration;
use tokio::time::timeout;

fn vote_of(node: u64, committed: bool) -> Vote {
    Vote { leader_id: LeaderId { term: 5, voted_for: node }, committed }
}

fn heartbeat(node: u64) -> AppendEntriesRequest<TypeConfig> {
    AppendEntriesRequest {
        vote: vote_of(node, true),
        prev_log_id: None,
        entries: Vec::new(),
        leader_commit: None,
    }
}

/// Node 2 calls node 1.
async fn call(net: &Net, purpose: Purpose) -> Frames {
    net.dialer(2).connect(1, &address(1), purpose).await.unwrap().into_frames()
}

async fn exchange(connection: &mut Frames, frame: &Frame) -> Frame {
    connection.writer.send(frame).await.unwrap();
    connection.reader.read(1 << 20).await.unwrap().unwrap()
}

async fn is_closed(connection: &mut Frames) -> bool {
    let read = timeout(Duration::from_secs(2), connection.reader.read(1 << 20)).await;
    matches!(read, Ok(Ok(None) | Err(_)))
}

#[tokio::test]
async fn a_node_can_t_send_entries_in_the_name_of_another() {
    let net = Net::default();
    let node = Node::start(&net, 1).await;
    let mut connection = call(&net, Purpose::Append).await;
    let answer = exchange(&mut connection, &Frame::holding(APPEND, &(0_u64, heartbeat(2))).unwrap()).await;
    assert!(answer.value::<(u64, StreamAppendResult<TypeConfig>)>().unwrap().1.is_ok());
    assert!(node.host.roster.silent_for(2).is_some());

    let answer = exchange(&mut connection, &Frame::holding(APPEND, &(0_u64, heartbeat(3))).unwrap()).await;
    assert_eq!((answer.kind, answer.value().unwrap()), (REFUSED, "node 2 speaks for node 3".to_owned()));
    assert!(is_closed(&mut connection).await);
    assert!(node.host.roster.silent_for(3).is_none(), "it wasn't heard from");
}

#[tokio::test]
async fn a_node_can_t_ask_for_votes_or_hand_the_lead_over_in_the_name_of_another() {
    let net = Net::default();
    let node = Node::start(&net, 1).await;
    let vote = VoteRequest::<TypeConfig>::new(vote_of(3, false), None);
    let transfer = TransferLeaderRequest::<TypeConfig>::new(vote_of(3, true), 1, None);
    let asked = |kind| match kind {
        TRANSFER => Frame::holding(kind, &(9_u64, &transfer)),
        _ => Frame::holding(kind, &(9_u64, &vote)),
    };
    for kind in [VOTE, PRE_VOTE, TRANSFER] {
        let mut connection = call(&net, Purpose::Ask).await;
        let answer = exchange(&mut connection, &asked(kind).unwrap()).await;
        let (tag, text) = untag(&answer).unwrap();
        assert_eq!(
            (answer.kind, tag, text.value().unwrap()),
            (REFUSED, 9, "node 2 speaks for node 3".to_owned())
        );
        assert!(is_closed(&mut connection).await);
    }
    assert_eq!(node.term(), 0);
}

/// Case C40: its connection is from before the removal.
#[tokio::test]
async fn a_member_that_was_removed_is_refused_on_a_connection_that_it_still_has() {
    let net = Net::default();
    let node = Node::start(&net, 1).await;
    let mut connection = call(&net, Purpose::Ask).await;
    let pulse = Frame::holding(PULSE, &(1_u64, Pulse::default())).unwrap();
    let answer = exchange(&mut connection, &pulse).await;
    assert_eq!(untag(&answer).unwrap().1.value::<Census>().unwrap().leader, Some(2));

    let members = [1, 3].map(|id| (id, roster().member(id).unwrap()));
    node.host.roster.update(members.into());
    node.host.roster.note_ids_used(3);
    let vote = VoteRequest::<TypeConfig>::new(vote_of(2, false), None);
    let answer = exchange(&mut connection, &Frame::holding(VOTE, &(2_u64, vote)).unwrap()).await;
    assert_eq!(untag(&answer).unwrap().1.value::<String>().unwrap(), "node 2 is no member any more");
    assert!(is_closed(&mut connection).await);
    assert_eq!(node.term(), 0);
}

#[tokio::test]
async fn a_question_of_a_later_release_is_refused_and_the_connection_goes_on() {
    let net = Net::default();
    let _node = Node::start(&net, 1).await;
    let mut connection = call(&net, Purpose::Ask).await;
    let answer = exchange(&mut connection, &Frame::holding(77, &(1_u64, [1_u8, 2, 3])).unwrap()).await;
    assert_eq!(answer.kind, REFUSED);
    let pulse = Frame::holding(PULSE, &(2_u64, Pulse::default())).unwrap();
    assert_eq!(exchange(&mut connection, &pulse).await.kind, PULSE);
}

/// Nothing that comes in stops the node.
#[tokio::test]
async fn what_can_t_be_read_ends_the_connection_and_not_the_node() {
    let net = Net::default();
    let node = Node::start(&net, 1).await;
    for purpose in [Purpose::Append, Purpose::Ask, Purpose::Snapshot] {
        for (kind, body) in [(1, &b""[..]), (1, b"\xff\xff\xff"), (2, b"\x01\xff"), (200, b"x"), (255, b"")] {
            let mut connection = call(&net, purpose).await;
            let frame = Frame { kind, body: Bytes::copy_from_slice(body) };
            connection.writer.send(&frame).await.unwrap();
            connection.writer.flush().await.unwrap();
            drop(timeout(Duration::from_millis(20), connection.reader.read(1 << 20)).await);
        }
    }
    let mut connection = call(&net, Purpose::Append).await;
    let answer = exchange(&mut connection, &Frame::holding(APPEND, &(0_u64, heartbeat(2))).unwrap()).await;
    assert_eq!(answer.kind, APPEND);
    assert!(node.raft.is_initialized().await.is_ok());
}

/// Nobody keeps a connection that it doesn't use.
#[tokio::test(start_paused = true)]
async fn a_connection_on_which_nothing_comes_is_ended_after_a_minute() {
    let net = Net::default();
    let _node = Node::start(&net, 1).await;
    for purpose in [Purpose::Append, Purpose::Ask, Purpose::Snapshot] {
        let mut connection = call(&net, purpose).await;
        let ended = timeout(Duration::from_secs(61), connection.reader.read(1 << 20)).await;
        assert!(matches!(ended, Ok(Ok(None) | Err(_))), "{purpose}");
    }
}

fn entry(term: u64, index: u64) -> Entry {
    let payload = Payload::Normal(EntryBytes(Bytes::from_static(b"x")));
    Entry { log_id: LogId::new_term_index(term, index), payload }
}

#[test]
fn entries_with_a_gap_or_of_a_later_term_are_not_given_to_the_library() {
    let request = |prev: Option<(u64, u64)>, entries: &[(u64, u64)], committed| AppendEntriesRequest {
        vote: vote_of(2, committed),
        prev_log_id: prev.map(|(term, index)| LogId::new_term_index(term, index)),
        entries: entries.iter().map(|(term, index)| entry(*term, *index)).collect(),
        leader_commit: None,
    };
    assert_eq!(check_append(2, &request(None, &[(1, 0), (1, 1), (5, 2)], true)), Ok(()));
    assert_eq!(check_append(2, &request(Some((1, 7)), &[(5, 8)], true)), Ok(()));
    for wrong in [
        request(None, &[(1, 1)], true),
        request(Some((1, 7)), &[(1, 9)], true),
        request(Some((1, 7)), &[(1, 8), (1, 8)], true),
        request(Some((3, 7)), &[(2, 8)], true),
        request(Some((1, 7)), &[(6, 8)], true),
        request(Some((6, 7)), &[], true),
        request(None, &[], false),
    ] {
        assert!(check_append(2, &wrong).is_err(), "{wrong:?}");
    }
}

/// Entries are copied as a whole: a byte more for each byte would show here.
#[test]
fn an_entry_of_many_bytes_is_sent_with_a_few_more() {
    let payload = Payload::Normal(EntryBytes(Bytes::from(vec![0xff; 4 << 20])));
    let entries = vec![Entry { log_id: LogId::new_term_index(1, 0), payload }];
    let request = AppendEntriesRequest::<TypeConfig> { entries, ..heartbeat(2) };
    let frame = Frame::holding(APPEND, &request).unwrap();
    assert!(frame.body.len() < (4 << 20) + 64, "{}", frame.body.len());
    let read: AppendEntriesRequest<TypeConfig> = frame.value().unwrap();
    assert_eq!(read.entries, request.entries);
}
