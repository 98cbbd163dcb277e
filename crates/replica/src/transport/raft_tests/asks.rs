//! Questions over the kept connection to a member, against a scripted other end.

use super::super::door::{DoorGuard, Incoming};
use super::super::frame::{Frame, Frames};
use super::super::handshake::Purpose;
use super::super::raft_client::{AskError, Asks, PeerNetworks};
use super::super::raft_frames::{PRE_VOTE, PULSE, REFUSED, VOTE, untag};
use super::net::{Net, address, member};
use crate::pulse::{Census, Pulse};
use crate::raft_types::{TypeConfig, Vote};
use openraft::errors::RPCError;
use openraft::impls::leader_id_std::LeaderId;
use openraft::network::{NetVote, RPCOption, RaftNetworkFactory};
use openraft::raft::{VoteRequest, VoteResponse};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

struct World {
    net: Net,
    asks: Asks,
    taken: mpsc::Receiver<Incoming>,
    _door: DoorGuard,
}

/// Questions of node 1 to node 2, where the test answers.
fn world() -> World {
    let net = Net::default();
    let (taken, door) = net.scripted(2);
    let asks = Asks::new(net.dialer(1));
    World { net, asks, taken, _door: door }
}

fn made(net: &Net) -> usize {
    net.way(1, 2).made.load(Relaxed)
}

async fn accept(taken: &mut mpsc::Receiver<Incoming>) -> Frames {
    let incoming = taken.recv().await.unwrap();
    assert_eq!((incoming.from, incoming.purpose), (1, Purpose::Ask));
    incoming.connection.into_frames()
}

async fn question(other_end: &mut Frames) -> (u64, Frame) {
    untag(&other_end.reader.read(1 << 20).await.unwrap().unwrap()).unwrap()
}

async fn say<T: serde::Serialize>(other_end: &mut Frames, kind: u8, tag: u64, answer: &T) {
    other_end.writer.send(&Frame::holding(kind, &(tag, answer)).unwrap()).await.unwrap();
}

fn vote() -> Vote {
    Vote { leader_id: LeaderId { term: 4, voted_for: 1 }, committed: false }
}

fn vote_request() -> VoteRequest<TypeConfig> {
    VoteRequest::new(vote(), None)
}

fn granted() -> VoteResponse<TypeConfig> {
    VoteResponse::new(vote(), None, true)
}

fn census(leader: u64) -> Census {
    Census { leader: Some(leader), ..Census::default() }
}

async fn pulse(asks: &Asks, within_ms: u64) -> Result<Census, AskError> {
    asks.pulse(2, &address(2), &Pulse::default(), Duration::from_millis(within_ms)).await
}

/// Trap 1 and 3: the library makes a new client for every round of votes; each kind of question has its own answer.
#[tokio::test(start_paused = true)]
async fn votes_of_many_clients_and_pulses_share_one_connection() {
    let mut world = world();
    let answering = async {
        let mut other_end = accept(&mut world.taken).await;
        for _ in 0..10 {
            let (tag, frame) = question(&mut other_end).await;
            assert_eq!(
                (frame.kind, frame.value::<VoteRequest<TypeConfig>>().unwrap()),
                (PRE_VOTE, vote_request())
            );
            say(&mut other_end, PRE_VOTE, tag, &granted()).await;
            let (tag, frame) = question(&mut other_end).await;
            assert_eq!(frame.kind, VOTE);
            say(&mut other_end, VOTE, tag, &granted()).await;
            let (tag, frame) = question(&mut other_end).await;
            assert_eq!(frame.kind, PULSE);
            say(&mut other_end, PULSE, tag, &census(1)).await;
        }
    };
    let asking = async {
        let mut networks = PeerNetworks::new(world.net.dialer(1), world.asks.clone());
        let option = || RPCOption::new(Duration::from_millis(200));
        for _ in 0..10 {
            let mut client = networks.new_client(2, &member(2)).await;
            assert_eq!(client.pre_vote(vote_request(), option()).await, Ok(granted()));
            assert_eq!(client.vote(vote_request(), option()).await, Ok(granted()));
            assert_eq!(pulse(&world.asks, 500).await.unwrap(), census(1));
        }
    };
    tokio::join!(asking, answering);
    assert_eq!(made(&world.net), 1);
}

/// Trap 3: silence is no grant.
#[tokio::test(start_paused = true)]
async fn a_pre_vote_without_an_answer_is_an_error_and_not_a_grant() {
    let mut world = world();
    let mut client =
        PeerNetworks::new(world.net.dialer(1), world.asks.clone()).new_client(2, &member(2)).await;
    let begun = Instant::now();
    let asking = client.pre_vote(vote_request(), RPCOption::new(Duration::from_millis(200)));
    let (answer, _other_end) = tokio::join!(asking, accept(&mut world.taken));
    assert!(matches!(answer, Err(RPCError::Timeout(_))), "{answer:?}");
    assert_eq!(begun.elapsed(), Duration::from_millis(150));
}

#[tokio::test(start_paused = true)]
async fn a_question_overtakes_one_that_is_answered_slowly() {
    let mut world = world();
    let slow = pulse(&world.asks, 1_000);
    let fast = async {
        sleep(Duration::from_millis(10)).await;
        pulse(&world.asks, 50).await
    };
    let answering = async {
        let mut other_end = accept(&mut world.taken).await;
        let (first, _) = question(&mut other_end).await;
        let (second, _) = question(&mut other_end).await;
        say(&mut other_end, PULSE, second, &census(2)).await;
        sleep(Duration::from_millis(500)).await;
        say(&mut other_end, PULSE, first, &census(1)).await;
        other_end
    };
    let (slow, fast, _) = tokio::join!(slow, fast, answering);
    assert_eq!((slow.unwrap(), fast.unwrap()), (census(1), census(2)));
}

/// A link that swallows everything: the next question doesn't go the same way.
#[tokio::test(start_paused = true)]
async fn a_question_whose_time_is_over_takes_its_connection_out_of_use_but_harms_no_other_on_it() {
    let mut world = world();
    let answering = async {
        let mut old = accept(&mut world.taken).await;
        let (patient, _) = question(&mut old).await;
        question(&mut old).await;
        let mut fresh = accept(&mut world.taken).await;
        let (third, _) = question(&mut fresh).await;
        say(&mut fresh, PULSE, third, &census(3)).await;
        say(&mut old, PULSE, patient, &census(1)).await;
        // Nobody uses it any more.
        assert!(old.reader.read(1 << 20).await.unwrap_or(None).is_none());
        fresh
    };
    let patient = pulse(&world.asks, 1_000);
    let others = async {
        sleep(Duration::from_millis(10)).await;
        assert!(matches!(pulse(&world.asks, 100).await, Err(AskError::Slow { .. })));
        pulse(&world.asks, 100).await
    };
    let (patient, third, _) = tokio::join!(patient, others, answering);
    assert_eq!((patient.unwrap(), third.unwrap()), (census(1), census(3)));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_doesn_t_answer_holds_up_no_question_to_another() {
    let mut world = world();
    let (mut third, _door) = world.net.scripted(3);
    let begun = Instant::now();
    let to_third = async {
        let asked = world.asks.pulse(3, &address(3), &Pulse::default(), Duration::from_millis(100)).await;
        (asked, begun.elapsed())
    };
    let answering = async {
        let mut other_end = accept(&mut third).await;
        let (tag, _) = question(&mut other_end).await;
        say(&mut other_end, PULSE, tag, &census(3)).await;
        other_end
    };
    world.net.part(1, 2);
    let (silent, (asked, took), _) = tokio::join!(pulse(&world.asks, 1_000), to_third, answering);
    assert!(silent.is_err());
    assert_eq!(asked.unwrap(), census(3));
    assert!(took < Duration::from_millis(50), "{took:?}");
    assert!(world.taken.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_that_has_died_is_replaced_before_the_question_fails() {
    let mut world = world();
    for expected in 1..=3 {
        let answering = async {
            let mut other_end = accept(&mut world.taken).await;
            let (tag, _) = question(&mut other_end).await;
            say(&mut other_end, PULSE, tag, &census(expected)).await;
        };
        let (asked, ()) = tokio::join!(pulse(&world.asks, 500), answering);
        assert_eq!(asked.unwrap(), census(expected));
    }
    assert_eq!(made(&world.net), 3);
}

#[tokio::test(start_paused = true)]
async fn a_member_behind_a_cut_is_asked_again_as_soon_as_the_cut_heals() {
    let mut world = world();
    world.net.part(1, 2);
    assert!(matches!(pulse(&world.asks, 150).await, Err(AskError::Slow { .. })));
    world.net.join(1, 2);
    let answering = async {
        let mut other_end = accept(&mut world.taken).await;
        let (tag, _) = question(&mut other_end).await;
        say(&mut other_end, PULSE, tag, &census(1)).await;
    };
    let (asked, ()) = tokio::join!(pulse(&world.asks, 150), answering);
    assert_eq!(asked.unwrap(), census(1));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_comes_with_its_text() {
    let mut world = world();
    let answering = async {
        let mut other_end = accept(&mut world.taken).await;
        let (tag, _) = question(&mut other_end).await;
        say(&mut other_end, REFUSED, tag, &"node 1 is no member any more").await;
    };
    let (asked, ()) = tokio::join!(pulse(&world.asks, 500), answering);
    let Err(AskError::Refused { text }) = asked else { panic!("{asked:?}") };
    assert_eq!(text, "node 1 is no member any more");
}
