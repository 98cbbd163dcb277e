//! How the cluster stands, and changing who is in it.

use super::answer::{Answer, ok};
use super::door::Door;
use super::front::Front;
use crate::service::Stamped;
use axum::extract::{Request, State};
use kunci_api::{
    AddBody, AddRequest, ClusterBody, NodeBody, Problem, RemoveBody, RemoveRequest, ReplaceBody,
    ReplaceRequest, TransferBody, TransferRequest,
};
use kunci_replica::Position;

/// The cluster and its nodes, from this node itself: no quorum is asked.
///
/// A node that belongs to no cluster yet answers with itself alone: role `new`, id 0.
#[utoipa::path(
    get, path = "/cluster", tag = "cluster",
    responses(
        (status = 200, description = "What this node knows.", body = ClusterBody),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn cluster(State(front): State<Front>) -> Answer {
    match front.service.get() {
        Some(service) => ok(Ok(service.cluster())),
        None => ok(Ok(Stamped { body: of_no_cluster(&front), position: Position::default() })),
    }
}

fn of_no_cluster(front: &Front) -> ClusterBody {
    let me = &front.me;
    ClusterBody {
        cluster_id: None,
        leader: None,
        nodes: vec![NodeBody {
            id: 0,
            role: "new",
            peer: me.peer.clone(),
            http: me.http.clone(),
            native: me.native.clone(),
            zone: me.zone.clone(),
            priority: me.priority,
            healthy: true,
            disk: None,
            applied_index: 0,
        }],
        node_id: None,
        next_node_id: None,
        warnings: Vec::new(),
        revision: 0,
        cluster_time_ms: 0,
    }
}

/// Take a node that belongs to no cluster into this one.
///
/// It is a learner first, and a voter by itself once it has caught up: `GET /cluster` shows it. Asking again for a node
/// that is a member already changes nothing.
#[utoipa::path(
    post, path = "/cluster/add", tag = "cluster",
    request_body = AddRequest,
    responses(
        (status = 200, description = "It is a member.", body = AddBody),
        (status = 409, description = "Not now, or not this node: `change_in_progress`, `other_cluster` or `not_ready`.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "It doesn't answer: `peer_unreachable`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn add(door: Door, request: Request) -> Answer {
    let body: AddRequest = door.json(request).await?;
    let peer = body.read().map_err(|invalid| door.refuse(invalid))?;
    ok(door.service.add_member(&peer).await)
}

/// Let a node that belongs to no cluster take the place of a member, in one step once it has caught up.
#[utoipa::path(
    post, path = "/cluster/replace", tag = "cluster",
    request_body = ReplaceRequest,
    responses(
        (status = 200, description = "It is a learner, and will take the other one's place.", body = ReplaceBody),
        (status = 409, description = "Not now, or not these nodes: `change_in_progress`, `unknown_node`, `other_cluster` or `not_ready`.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The new node doesn't answer: `peer_unreachable`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn replace(door: Door, request: Request) -> Answer {
    let body: ReplaceRequest = door.json(request).await?;
    let (node_id, peer) = body.read().map_err(|invalid| door.refuse(invalid))?;
    ok(door.service.replace_member(node_id, &peer).await)
}

/// Take a member out of the cluster. Its id is never used again, and its data can't come back.
#[utoipa::path(
    post, path = "/cluster/remove", tag = "cluster",
    request_body = RemoveRequest,
    responses(
        (status = 200, description = "It is no member.", body = RemoveBody),
        (status = 409, description = "Not now, or never: `change_in_progress`, `unsafe_change` or `unknown_node`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn remove(door: Door, request: Request) -> Answer {
    let body: RemoveRequest = door.json(request).await?;
    let (node_id, force) = body.read().map_err(|invalid| door.refuse(invalid))?;
    ok(door.service.remove_member(node_id, force).await)
}

/// Let another member lead.
#[utoipa::path(
    post, path = "/cluster/transfer", tag = "cluster",
    request_body = TransferRequest,
    responses(
        (status = 200, description = "It leads.", body = TransferBody),
        (status = 409, description = "Not that one: `not_ready` or `unknown_node`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn transfer(door: Door, request: Request) -> Answer {
    let body: TransferRequest = door.json(request).await?;
    let to = body.read().map_err(|invalid| door.refuse(invalid))?;
    ok(door.service.transfer_lead(to).await)
}
