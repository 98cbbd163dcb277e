//! From a request to its answer.
//!
//! Owns: what a request means as a call of the service, and what a call's end means as an answer. Never: a connection.

use super::front::Front;
use super::way::refused;
use crate::service::{AcquireAnswer, OpenCall, Outcome as Called, Refused, Service, Stamped};
use crate::trace::Trace;
use futures::future::BoxFuture;
use kunci_api::native::{
    Acquire, Hello, LineFault, Op, Outcome, Request, Subject, VERSION, WaitFor, Welcome,
};
use kunci_api::{Asked, Cancelled, Code, Problem, Proof, Renewed};
use kunci_replica::{Lead, Position};
use kunci_types::{ClientAddress, Origin, Owner, ResourceName, Wait};
use std::future::ready;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How a request ended.
pub(super) struct End {
    pub(super) outcome: Outcome,
    pub(super) position: Position,
    /// The call of a grant, to be delivered with its answer.
    pub(super) grant: Option<OpenCall>,
}

impl End {
    fn of<T: Into<Outcome>>(service: &Service, op: Op, called: Called<T>) -> Self {
        match called {
            Ok(Stamped { body, position }) => Self { outcome: body.into(), position, grant: None },
            Err(why) => Self::refused(service, op, *why),
        }
    }

    pub(super) fn refused(service: &Service, op: Op, why: Refused) -> Self {
        Self::at(refused(service, op, why))
    }

    pub(super) fn at((outcome, position): (Outcome, Position)) -> Self {
        Self { outcome, position, grant: None }
    }
}

/// What ends a call that waits, besides its answer.
#[derive(Clone)]
pub(super) struct WaitEnds {
    /// The peer has closed its side, or the connection is being closed: no answer goes out.
    pub(super) left: CancellationToken,
    /// The node stops: the peer is told.
    pub(super) stop: CancellationToken,
}

/// The owner of what is asked on this connection without naming one. Drawn at random, so that no connection ever, on
/// whichever node, is taken for another.
pub(super) fn own_name() -> Result<Owner, getrandom::Error> {
    // 48 bits: 15 digits, and no two alike among all that are open at a time.
    let number = getrandom::u64()? >> 16;
    Ok(Owner::from_log(&format!("conn-{number}")))
}

/// A request that was taken.
pub(super) enum Begun {
    /// It goes by itself. Its end is none when nobody waits for it any more.
    Alone(BoxFuture<'static, Option<End>>),
    /// It can go together with others of its kind.
    Together(Service, Kind),
}

/// Who asks on a connection, and from where.
pub(super) struct Peer {
    /// The owner of what is asked without naming one.
    pub(super) name: Owner,
    pub(super) address: Option<ClientAddress>,
}

/// A request that costs the same with others as alone.
pub(super) enum Kind {
    Status(ResourceName),
    Renew(Renewed),
}

/// Begins a request of this peer.
pub(super) fn begin(front: &Front, request: Request, peer: &Peer, ends: &WaitEnds) -> Begun {
    let owner = |given: Option<Owner>| given.unwrap_or_else(|| peer.name.clone());
    let origin = Origin::at(peer.address);
    let Some(service) = front.service.get().cloned() else {
        return Begun::Alone(Box::pin(ready(Some(without_cluster(front, &request)))));
    };
    let trace = followed(front, &request);
    let work: BoxFuture<'static, Option<End>> = match request {
        Request::Acquire(Acquire { key, ttl, wait, request_id, owner: given, lock_delay }) => {
            let wait = match wait {
                WaitFor::Once => Wait::Try,
                WaitFor::UpToMs(ms) => Wait::UpToMs(ms),
                WaitFor::AsLongAsAllowed => Wait::UpToMs(service.wait_ms_max()),
            };
            let (owner, ttl) = (owner(given), Some(ttl));
            let asked = Asked { owner, request_id, ttl, wait, lock_delay, metadata: None };
            Box::pin(acquire(service, key, asked, origin, ends.clone()))
        }
        Request::Renew { key, lease_id, ttl } => {
            let renewed = Renewed { resource: key, proof: Proof::LeaseId(lease_id), ttl };
            return Begun::Together(service, Kind::Renew(renewed));
        }
        Request::Status { key } => return Begun::Together(service, Kind::Status(key)),
        Request::Release { key, proof } => Box::pin(async move {
            Some(End::of(&service, Op::Release, service.release(key, proof, origin).await))
        }),
        Request::Cancel { key, request_id, owner: given } => {
            let cancelled = Cancelled { owner: owner(given), request_id };
            Box::pin(async move { Some(cancel(&service, key, cancelled, origin).await) })
        }
        Request::Hello(hello) => Box::pin(ready(Some(welcome(front, &hello)))),
        Request::Ping => Box::pin(ready(Some(pong(front)))),
    };
    Begun::Alone(match trace {
        Some(trace) => Box::pin(async move { trace.follow("a request came to the native door", work).await }),
        None => work,
    })
}

/// The trace of a request that changes something, when it is its turn to be followed.
fn followed(front: &Front, request: &Request) -> Option<Trace> {
    match request {
        Request::Acquire(Acquire { key, .. }) => front.traces.picked("acquire", key),
        Request::Release { key, .. } => front.traces.picked("release", key),
        Request::Cancel { key, .. } => front.traces.picked("cancel", key),
        Request::Renew { .. } | Request::Status { .. } | Request::Hello(_) | Request::Ping => None,
    }
}

async fn acquire(
    service: Service,
    key: ResourceName,
    asked: Asked,
    origin: Origin,
    ends: WaitEnds,
) -> Option<End> {
    let refused = |why: Refused| Some(End::refused(&service, Op::Acquire, why));
    let mut call = match service.acquire(key, asked, None, origin).await {
        Ok(call) => call,
        Err(why) => return refused(*why),
    };
    let answered = match call.decided().await {
        Ok(Some(answered)) => Ok(answered),
        // In the queue: from here on somebody has to stand by for the answer.
        Ok(None) => tokio::select! {
            biased;
            answered = call.answer(Duration::MAX) => answered,
            () = ends.left.cancelled() => return None,
            () = ends.stop.cancelled() => Err(call.ended_early()),
        },
        Err(why) => Err(why),
    };
    match answered {
        Ok(Stamped { body: AcquireAnswer::Granted(body), position }) => {
            Some(End { outcome: body.into(), position, grant: Some(call) })
        }
        // Nobody sends a call away that is held for as long as it takes.
        Ok(Stamped { body: AcquireAnswer::Queued(_), .. }) => refused(*call.ended_early()),
        Err(why) => refused(*why),
    }
}

async fn cancel(service: &Service, key: ResourceName, cancelled: Cancelled, origin: Origin) -> End {
    let request_id = Some(cancelled.request_id.to_string());
    match service.cancel(key, cancelled, origin).await {
        Ok(Stamped { body: Ok(body), position }) => {
            End::at((Outcome::Cancelled { request_id, repeated: body.repeated }, position))
        }
        // The grant came first: whoever cancels releases it.
        Ok(Stamped { body: Err(grant), position }) => End::at((grant.into(), position)),
        Err(why) => End::refused(service, Op::Cancel, *why),
    }
}

/// What a node answers that belongs to no cluster.
fn without_cluster(front: &Front, request: &Request) -> End {
    match request {
        Request::Hello(hello) => welcome(front, hello),
        Request::Ping => pong(front),
        Request::Acquire(_)
        | Request::Renew { .. }
        | Request::Release { .. }
        | Request::Cancel { .. }
        | Request::Status { .. } => {
            let Refused { problem, position } = *front.refuse_without_cluster();
            End::at((Outcome::refused(Some(request.subject().op), problem), position))
        }
    }
}

/// What a line is answered that can't be read.
pub(super) fn unreadable(front: &Front, subject: Option<&Subject>, why: &LineFault) -> End {
    let field = why.field().map(str::to_owned);
    let problem = Problem { field, ..Problem::new(Code::Invalid, why.to_string()) };
    let Refused { problem, position } = *front.refuse(problem);
    End::at((Outcome::refused(subject.map(|subject| subject.op), problem), position))
}

/// Who asks isn't proved yet by anything, so a token that a client brings is left alone.
fn welcome(front: &Front, hello: &Hello) -> End {
    let service = front.service.get();
    let leader = service.and_then(|service| match service.lead() {
        Lead::Here => Some(front.me.native.clone()),
        Lead::At { native, .. } => Some(native),
        Lead::Nobody { .. } => None,
    });
    let outcome = Outcome::Welcome(Welcome {
        version: hello.version.min(VERSION),
        cluster: service.map(|service| service.cluster_id().to_string()),
        leader: leader.filter(|native| !native.is_empty()),
    });
    End::at((outcome, front.position()))
}

fn pong(front: &Front) -> End {
    End::at((Outcome::Pong, front.position()))
}
