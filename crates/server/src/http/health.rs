//! For supervisors and load balancers: does the process live, does it serve.

use super::answer::{Answer, ok};
use super::front::Front;
use crate::service::{Service, Stamped};
use axum::extract::State;
use kunci_api::{Code, LiveBody, Problem, ReadyBody};
use kunci_replica::Lead;

/// The process runs and answers. Restart it when this fails.
#[utoipa::path(
    get, path = "/livez", tag = "node",
    responses((status = 200, description = "It lives.", body = LiveBody))
)]
pub(super) async fn livez(State(front): State<Front>) -> Answer {
    let body = LiveBody { live: true, revision: revision(&front) };
    ok(Ok(Stamped { body, position: front.position() }))
}

/// The node serves requests about locks, by itself or through the leader. Send it none while this fails.
#[utoipa::path(
    get, path = "/readyz", tag = "node",
    responses(
        (status = 200, description = "It serves.", body = ReadyBody),
        (status = 503, description = "It doesn't serve now: it knows no leader (`no_leader`, `no_quorum`), belongs to no cluster, or is about to stop.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn readyz(State(front): State<Front>) -> Answer {
    if front.is_ending() {
        let detail = "this node is about to stop: send requests to another one";
        return Err(front.refuse(Problem::new(Code::NoLeader, detail)));
    }
    let Some(service) = front.service.get() else { return Err(front.refuse_without_cluster()) };
    match service.lead() {
        Lead::Here | Lead::At { .. } => {}
        Lead::Nobody { why, .. } => return Err(front.refuse(Service::without_leader(why))),
    }
    let body = ReadyBody { ready: true, revision: revision(&front) };
    ok(Ok(Stamped { body, position: front.position() }))
}

fn revision(front: &Front) -> u64 {
    front.service.get().map_or(0, Service::revision)
}
