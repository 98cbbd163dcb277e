//! Calls in few words.

use crate::client::Caller;
use kunci_oracle::{Answer, Held, History, Op, Outcome, Told};
use std::net::SocketAddr;
use std::time::Duration;

/// Clients that a case makes by itself have names from here on.
const FIRST_NAME: u64 = 100;

/// A client that a case makes by itself.
pub(super) fn client(number: u64, doors: &[SocketAddr], history: &History) -> Caller {
    Caller::new(FIRST_NAME + number, doors, history)
}

/// What a lease is asked for with.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) resource: &'a str,
    pub(super) owner: &'a str,
    pub(super) ttl_ms: u64,
    pub(super) wait_ms: u64,
}

impl Ask<'_> {
    /// The acquire. One request for each owner and resource.
    pub(super) fn op(self) -> Op {
        Op::Acquire {
            resource: self.resource.to_owned(),
            owner: self.owner.to_owned(),
            request: format!("{}-{}", self.owner, self.resource),
            ttl_ms: self.ttl_ms,
            wait_ms: self.wait_ms,
            delay_ms: 0,
        }
    }
}

/// A lease that a case holds.
#[derive(Clone, Debug)]
pub(super) struct Mine {
    pub(super) resource: String,
    pub(super) token: u64,
    pub(super) lease: String,
}

impl Mine {
    pub(super) fn renew(&self) -> Op {
        Op::Renew { resource: self.resource.clone(), lease: self.lease.clone() }
    }

    pub(super) fn release(&self) -> Op {
        Op::Release { resource: self.resource.clone(), lease: self.lease.clone() }
    }
}

/// Asks for a lease with retries, and must get it.
pub(super) async fn acquire(caller: &mut Caller, ask: Ask<'_>) -> Mine {
    match caller.settle(&ask.op(), 200).await {
        Some((Told::Granted { token, lease, .. }, _)) => {
            Mine { resource: ask.resource.to_owned(), token, lease }
        }
        other => panic!("{} doesn't get {}: {other:?}", ask.owner, ask.resource),
    }
}

/// Gives a lease back with retries, and must succeed.
pub(super) async fn release(caller: &mut Caller, mine: &Mine) {
    let told = caller.settle(&mine.release(), 100).await;
    assert!(matches!(told, Some((Told::Released { .. }, _))), "{mine:?} isn't released: {told:?}");
}

/// Renews `times` times in this rhythm, and must succeed every time.
pub(super) async fn keep(caller: &mut Caller, mine: &Mine, every: Duration, times: u32) {
    for _ in 0..times {
        tokio::time::sleep(every).await;
        let told = caller.settle(&mine.renew(), 100).await;
        assert!(matches!(told, Some((Told::Renewed { .. }, _))), "{mine:?} isn't renewed: {told:?}");
    }
}

/// What the first node that knows says of a resource.
pub(super) async fn status(caller: &mut Caller, resource: &str) -> Option<Held> {
    match caller.settle(&Op::Status { resource: resource.to_owned() }, 200).await {
        Some((Told::Status { held, .. }, _)) => held,
        other => panic!("{resource} has no status: {other:?}"),
    }
}

/// The answer of one call, if there was one.
pub(super) fn answer(outcome: Outcome) -> Option<Answer> {
    match outcome {
        Outcome::Answer(answer) => Some(answer),
        Outcome::NotSent(_) | Outcome::Unknown(_) => None,
    }
}
