//! For supervisors and load balancers: does the process live, does it serve.

use super::answer::{Answer, ok};
use super::door::Door;
use crate::service::Stamped;
use axum::extract::State;
use kunci_api::{Code, LiveBody, Problem, ReadyBody};

/// The process runs and answers. Restart it when this fails.
#[utoipa::path(
    get, path = "/livez", tag = "node",
    responses((status = 200, description = "It lives.", body = LiveBody))
)]
pub(super) async fn livez(State(door): State<Door>) -> Answer {
    let body = LiveBody { live: true, revision: door.service.status_of_node().revision.get() };
    ok(Ok(Stamped { body, position: door.service.position() }))
}

/// The node serves requests about locks. Send it none while this fails.
#[utoipa::path(
    get, path = "/readyz", tag = "node",
    responses(
        (status = 200, description = "It serves.", body = ReadyBody),
        (status = 503, description = "It doesn't serve now: `no_leader`.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn readyz(State(door): State<Door>) -> Answer {
    let status = door.service.status_of_node();
    if !status.serving || door.stop.is_cancelled() {
        let detail = "this node doesn't serve right now: it has no leader, or is starting or stopping";
        return Err(door.service.refuse(Problem::new(Code::NoLeader, detail)).into());
    }
    let body = ReadyBody { ready: true, revision: status.revision.get() };
    ok(Ok(Stamped { body, position: door.service.position() }))
}
