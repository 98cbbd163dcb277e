//! One stream after another over a kept connection, against a scripted other end.

use super::super::door::{DoorGuard, Incoming};
use super::super::frame::{Frame, Frames};
use super::super::handshake::Purpose;
use super::super::raft_client::{Asks, PeerClient, PeerNetworks};
use super::super::raft_frames::{APPEND, REFUSED};
use super::net::{Net, member};
use crate::raft_types::{LogId, TypeConfig, Vote};
use futures::{StreamExt, stream};
use openraft::errors::RPCError;
use openraft::impls::leader_id_std::LeaderId;
use openraft::network::{NetStreamAppend, RPCOption, RaftNetworkFactory};
use openraft::raft::{AppendEntriesRequest, StreamAppendError, StreamAppendResult};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

/// What the library gives for heartbeats and entries: one heartbeat interval.
fn option() -> RPCOption {
    RPCOption::new(Duration::from_millis(50))
}

fn log_id(index: u64) -> LogId {
    LogId::new_term_index(1, index)
}

/// An empty request that stands at `index`, so that it can be told from others.
fn request(index: u64) -> AppendEntriesRequest<TypeConfig> {
    let vote = Vote { leader_id: LeaderId { term: 1, voted_for: 1 }, committed: true };
    AppendEntriesRequest { vote, prev_log_id: Some(log_id(index)), entries: Vec::new(), leader_commit: None }
}

struct World {
    net: Net,
    client: PeerClient,
    taken: mpsc::Receiver<Incoming>,
    _door: DoorGuard,
}

/// A client of node 1 to node 2, where the test answers.
async fn world() -> World {
    let net = Net::default();
    let (taken, door) = net.scripted(2);
    let dialer = net.dialer(1);
    let client = PeerNetworks::new(dialer.clone(), Asks::new(dialer)).new_client(2, &member(2)).await;
    World { net, client, taken, _door: door }
}

impl World {
    fn made(&self) -> usize {
        self.net.way(1, 2).made.load(Relaxed)
    }
}

/// The next connection, as the other end sees it.
async fn accept(taken: &mut mpsc::Receiver<Incoming>) -> Other {
    let incoming = taken.recv().await.unwrap();
    assert_eq!((incoming.from, incoming.purpose), (1, Purpose::Append));
    Other::new(incoming.connection.into_frames())
}

/// Sends the requests in one stream and gives all answers.
async fn send(
    client: &mut PeerClient,
    indexes: &[u64],
) -> Vec<Result<StreamAppendResult<TypeConfig>, RPCError<TypeConfig>>> {
    let requests = stream::iter(indexes.iter().map(|index| request(*index)).collect::<Vec<_>>());
    client.stream_append(requests, option()).await.unwrap().collect().await
}

/// The other end of a connection.
struct Other {
    frames: Frames,
    /// The number of the next request to be answered.
    answered: u64,
}

impl Other {
    fn new(frames: Frames) -> Self {
        Self { frames, answered: 0 }
    }

    async fn index_of_next(&mut self) -> u64 {
        let frame = self.frames.reader.read(1 << 20).await.unwrap().unwrap();
        let (_, request): (u64, AppendEntriesRequest<TypeConfig>) = frame.value().unwrap();
        request.prev_log_id.unwrap().index
    }

    async fn say(&mut self, answer: StreamAppendResult<TypeConfig>) {
        let frame = Frame::holding(APPEND, &(self.answered, answer)).unwrap();
        self.answered += 1;
        self.frames.writer.send(&frame).await.unwrap();
    }

    /// Answers so many requests with success.
    async fn answer(&mut self, times: usize) {
        for _ in 0..times {
            let index = self.index_of_next().await;
            self.say(Ok(Some(log_id(index)))).await;
        }
    }

    /// Reads until the connection ends.
    async fn end(&mut self) {
        while self.frames.reader.read(1 << 20).await.unwrap_or(None).is_some() {}
    }
}

/// Trap 1: the library opens a stream for each heartbeat.
#[tokio::test(start_paused = true)]
async fn many_short_streams_share_one_connection_and_each_ends_without_an_error() {
    let mut world = world().await;
    let mut first = None;
    for index in 0..100 {
        let indexes = [index];
        let sending = send(&mut world.client, &indexes);
        let answering = async {
            if first.is_none() {
                first = Some(accept(&mut world.taken).await);
            }
            first.as_mut().unwrap().answer(1).await;
        };
        let (answers, ()) = tokio::join!(sending, answering);
        assert_eq!(answers, [Ok(Ok(Some(log_id(index))))]);
    }
    assert_eq!(world.made(), 1);
}

/// Trap 1: a stream ends only after each of its requests has an answer.
#[tokio::test(start_paused = true)]
async fn requests_are_sent_without_waiting_and_all_answers_come_before_the_end() {
    let mut world = world().await;
    let sending = send(&mut world.client, &[1, 2, 3]);
    let answering = async {
        let mut other_end = accept(&mut world.taken).await;
        for expected in 1..=3 {
            assert_eq!(other_end.index_of_next().await, expected);
        }
        sleep(Duration::from_millis(300)).await;
        for index in 1..=3 {
            other_end.say(Ok(Some(log_id(index)))).await;
        }
    };
    let (answers, ()) = tokio::join!(sending, answering);
    let indexes = answers.into_iter().map(|answer| answer.unwrap().unwrap().unwrap().index);
    assert_eq!(indexes.collect::<Vec<_>>(), [1, 2, 3]);
}

/// Trap 1: the library gives a heartbeat up after 50 ms, and a disk may take longer.
#[tokio::test(start_paused = true)]
async fn answers_to_a_stream_that_was_given_up_are_passed_over_and_the_connection_stays() {
    let mut world = world().await;
    let given_up = async {
        let sent = timeout(Duration::from_millis(50), send(&mut world.client, &[1])).await;
        assert!(sent.is_err());
        let sent = timeout(Duration::from_millis(50), send(&mut world.client, &[2])).await;
        assert!(sent.is_err());
    };
    let (mut other_end, ()) = tokio::join!(async { accept(&mut world.taken).await }, given_up);
    let sending = send(&mut world.client, &[3]);
    let (answers, ()) = tokio::join!(sending, other_end.answer(3));
    assert_eq!(answers, [Ok(Ok(Some(log_id(3))))]);
    assert_eq!(world.made(), 1);
}

/// Trap 1.
#[tokio::test(start_paused = true)]
async fn after_a_conflict_or_a_higher_vote_the_next_stream_has_a_fresh_connection() {
    let mut world = world().await;
    let higher = Vote { leader_id: LeaderId { term: 7, voted_for: 3 }, committed: false };
    for (nth, refusal) in [StreamAppendError::Conflict(log_id(1)), StreamAppendError::HigherVote(higher)]
        .into_iter()
        .enumerate()
    {
        let sending = send(&mut world.client, &[1, 2]);
        let answering = async {
            let mut other_end = accept(&mut world.taken).await;
            other_end.index_of_next().await;
            other_end.say(Err(refusal.clone())).await;
            // The end of the connection: what it would say to the second request is of no use.
            other_end.end().await;
        };
        let (answers, ()) = tokio::join!(sending, answering);
        assert_eq!(answers, [Ok(Err(refusal.clone()))]);
        assert_eq!(world.made(), nth + 1);
    }
}

/// A late refusal belongs to the stream that was given up, never to the next one.
#[tokio::test(start_paused = true)]
async fn a_refusal_for_an_earlier_stream_is_not_taken_for_this_one_and_the_request_goes_out_again() {
    let mut world = world().await;
    let given_up = async {
        assert!(timeout(Duration::from_millis(50), send(&mut world.client, &[1])).await.is_err());
    };
    let (mut other_end, ()) = tokio::join!(async { accept(&mut world.taken).await }, given_up);
    let sending = send(&mut world.client, &[2]);
    let answering = async {
        assert_eq!(other_end.index_of_next().await, 1);
        other_end.say(Err(StreamAppendError::Conflict(log_id(1)))).await;
        let mut fresh = accept(&mut world.taken).await;
        fresh.answer(1).await;
    };
    let (answers, ()) = tokio::join!(sending, answering);
    assert_eq!(answers, [Ok(Ok(Some(log_id(2))))]);
}

/// An answer that got lost must not make the next one count for it: the library takes the time when the heartbeat
/// was sent as proof that this node led then.
#[tokio::test(start_paused = true)]
async fn an_answer_out_of_turn_costs_the_connection_and_is_nobodys() {
    let mut world = world().await;
    let given_up = async {
        assert!(timeout(Duration::from_millis(50), send(&mut world.client, &[1])).await.is_err());
    };
    let (mut other_end, ()) = tokio::join!(accept(&mut world.taken), given_up);
    let sending = send(&mut world.client, &[2]);
    let answering = async {
        assert_eq!(other_end.index_of_next().await, 1);
        assert_eq!(other_end.index_of_next().await, 2);
        other_end.answered += 1;
        other_end.say(Ok(Some(log_id(2)))).await;
        accept(&mut world.taken).await.answer(1).await;
    };
    let (answers, ()) = tokio::join!(sending, answering);
    assert_eq!(answers, [Ok(Ok(Some(log_id(2))))]);
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_that_has_died_is_replaced_before_the_request_fails() {
    let mut world = world().await;
    let (_, ()) = tokio::join!(send(&mut world.client, &[1]), async {
        accept(&mut world.taken).await.answer(1).await;
    });
    let (answers, ()) = tokio::join!(send(&mut world.client, &[2]), async {
        accept(&mut world.taken).await.answer(1).await;
    });
    assert_eq!(answers, [Ok(Ok(Some(log_id(2))))]);
    assert_eq!(world.made(), 2);
}

/// Once, and not for ever.
#[tokio::test(start_paused = true)]
async fn a_request_whose_fresh_connection_dies_too_fails() {
    let mut world = world().await;
    let (_, ()) = tokio::join!(send(&mut world.client, &[1]), async {
        accept(&mut world.taken).await.answer(1).await;
    });
    let (answers, ()) = tokio::join!(send(&mut world.client, &[2]), async {
        let mut fresh = accept(&mut world.taken).await;
        fresh.index_of_next().await;
    });
    assert!(matches!(&answers[..], [Err(RPCError::Network(_))]), "{answers:?}");
}

/// Trap 2: one lost answer must not hold the replication up, and a slow disk is no reason to give up.
#[tokio::test(start_paused = true)]
async fn a_member_that_owes_an_answer_for_a_second_is_given_up_and_for_300_ms_is_not() {
    let mut world = world().await;
    let begun = Instant::now();
    let sending = send(&mut world.client, &[1, 2]);
    let answering = async {
        let mut other_end = accept(&mut world.taken).await;
        other_end.index_of_next().await;
        sleep(Duration::from_millis(300)).await;
        other_end.say(Ok(Some(log_id(1)))).await;
        other_end.index_of_next().await;
        // The answer to the second is lost.
        other_end.end().await;
    };
    let (answers, ()) = tokio::join!(sending, answering);
    assert!(matches!(&answers[..], [Ok(Ok(_)), Err(RPCError::Timeout(_))]), "{answers:?}");
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(1_300) && took < Duration::from_millis(1_500), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_can_t_be_reached_is_unreachable() {
    let net = Net::default();
    let dialer = net.dialer(1);
    let mut client = PeerNetworks::new(dialer.clone(), Asks::new(dialer)).new_client(2, &member(2)).await;
    let answers = send(&mut client, &[1]).await;
    assert!(matches!(&answers[..], [Err(RPCError::Unreachable(_))]), "{answers:?}");
}

/// A heartbeat has 50 ms; a handshake over a long way may take longer, and must come to its end all the same.
#[tokio::test(start_paused = true)]
async fn a_connection_that_takes_longer_than_one_heartbeat_comes_about() {
    let mut world = world().await;
    world.net.way(1, 2).late_back_ms.store(120, Relaxed);
    let beats = async {
        for index in 0..10 {
            drop(timeout(Duration::from_millis(50), send(&mut world.client, &[index])).await);
        }
    };
    let (mut other_end, ()) = tokio::join!(async { accept(&mut world.taken).await }, beats);
    assert!(other_end.index_of_next().await < 9);
    assert_eq!(world.made(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_ends_the_stream_with_its_text() {
    let mut world = world().await;
    let sending = send(&mut world.client, &[1]);
    let answering = async {
        let mut other_end = accept(&mut world.taken).await;
        other_end.index_of_next().await;
        other_end
            .frames
            .writer
            .send(&Frame::holding(REFUSED, &"node 1 speaks for node 3").unwrap())
            .await
            .unwrap();
    };
    let (answers, ()) = tokio::join!(sending, answering);
    let [Err(RPCError::Unreachable(error))] = &answers[..] else { panic!("{answers:?}") };
    assert!(error.to_string().contains("node 1 speaks for node 3"), "{error}");
}

/// An idle stream stays open while the other end closes the connection, and goes on with a fresh one.
#[tokio::test(start_paused = true)]
async fn a_connection_that_was_closed_for_idleness_costs_a_waiting_stream_nothing() {
    let mut world = world().await;
    let (requests, fed) = mpsc::unbounded_channel();
    let fed = Box::pin(stream::unfold(fed, |mut fed: mpsc::UnboundedReceiver<_>| async {
        Some((fed.recv().await?, fed))
    }));
    let mut answers = world.client.stream_append(fed, option()).await.unwrap();
    for index in 0..3 {
        requests.send(request(index)).unwrap();
        let (answer, ()) = tokio::join!(answers.next(), async {
            accept(&mut world.taken).await.answer(1).await;
        });
        assert_eq!(answer, Some(Ok(Ok(Some(log_id(index))))));
        assert!(timeout(Duration::from_secs(100), answers.next()).await.is_err());
    }
}
