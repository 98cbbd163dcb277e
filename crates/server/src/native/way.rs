//! Whether this node answers a request, or names the one that does.
//!
//! Owns: when a client is sent to the leader, and how long it is kept waiting for one. Never: passes a request on.

use super::calls::Peer;
use crate::audit::{Action, Denied};
use crate::service::{Refused, Service, draw_request_id};
use kunci_api::native::{Op, Outcome, Request};
use kunci_api::{Applied, Code, Problem};
use kunci_replica::{Lead, NoLead, Position};
use kunci_types::Origin;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// A hand-over or a quick election takes less than this, so nobody needs to hear of it.
const LEADERLESS_MAX: Duration = Duration::from_millis(400);

/// Where a request about a lock goes.
pub(super) enum Way {
    /// This node answers it.
    Here,
    /// Nobody does right now; until then it is worth waiting for somebody to lead.
    Later(Instant),
    /// This is its answer.
    Elsewhere(Box<(Outcome, Position)>),
}

/// Finds out where a request goes; `waited` says until when it was put off before.
pub(super) fn way(service: &Service, request: &Request, peer: &Peer, waited: Option<Instant>) -> Way {
    match service.lead() {
        Lead::Here => Way::Here,
        Lead::At { native, .. } => {
            Way::Elsewhere(Box::new(moved(service, request.subject().op, request_id(request), native)))
        }
        Lead::Nobody { why, since } => {
            // A leader that comes and goes doesn't make it longer.
            let until = waited.unwrap_or(since + LEADERLESS_MAX);
            if why != NoLead::Removed && kunci_process::now() < until {
                return Way::Later(until);
            }
            let problem = Problem { request_id: request_id(request), ..Service::without_leader(why) };
            record_denied(service, request, peer, problem.code);
            let Refused { problem, position } = *service.refuse(problem);
            Way::Elsewhere(Box::new((Outcome::refused(Some(request.subject().op), problem), position)))
        }
    }
}

/// Nobody got to decide the request, so no other audit log knows that it was denied.
fn record_denied(service: &Service, request: &Request, peer: &Peer, code: Code) {
    let Some(audit) = service.audit() else { return };
    let (action, key, given) = match request {
        Request::Acquire(acquire) => (Action::Acquire, &acquire.key, &acquire.owner),
        Request::Renew { key, .. } => (Action::Renew, key, &None),
        Request::Release { key, .. } => (Action::Release, key, &None),
        Request::Cancel { key, owner, .. } => (Action::Cancel, key, owner),
        Request::Status { .. } | Request::Hello(_) | Request::Ping => return,
    };
    let is_of_owner = matches!(action, Action::Acquire | Action::Cancel);
    audit.denied(Denied {
        action,
        outcome: code.as_str(),
        resource: Some(key.clone()),
        owner: is_of_owner.then(|| given.clone().unwrap_or_else(|| peer.name.clone())),
        token: None,
        lease_id: None,
        origin: Origin::at(peer.address),
    });
}

/// A refusal as it goes out. One that only says that this node doesn't lead names the leader instead.
pub(super) fn refused(service: &Service, op: Op, refused: Refused) -> (Outcome, Position) {
    let Refused { problem, position } = refused;
    if problem.code == Code::NoLeader
        && problem.applied == Applied::No
        && let Lead::At { native, .. } = service.lead()
    {
        return moved(service, op, problem.request_id, native);
    }
    (Outcome::refused(Some(op), problem), position)
}

fn moved(service: &Service, op: Op, request_id: Option<String>, native: String) -> (Outcome, Position) {
    if native.is_empty() {
        let detail = "another node leads and says no address for this protocol; nothing was proposed";
        let problem = Problem { request_id, ..Problem::new(Code::NoLeader, detail) };
        let Refused { problem, position } = *service.refuse(problem);
        return (Outcome::refused(Some(op), problem), position);
    }
    (Outcome::Moved { leader: native, request_id }, service.position())
}

/// An acquire has a request id from here on, so that its client can ask elsewhere with it.
fn request_id(request: &Request) -> Option<String> {
    let Request::Acquire(acquire) = request else { return None };
    let drawn = || draw_request_id().ok();
    acquire.request_id.clone().or_else(drawn).map(String::from)
}

/// Waits for news of who leads.
pub(super) async fn changed(changes: Option<&mut watch::Receiver<Lead>>) {
    if let Some(changes) = changes
        && changes.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}
