//! How the cluster stands, as this node knows by itself.

use super::answer::{Answer, ok};
use super::door::Door;
use crate::service::Stamped;
use axum::extract::State;
use kunci_api::{ClusterBody, NodeBody, Problem};
use kunci_replica::{MemberStatus, Role};

/// The cluster and its nodes, from this node itself: no quorum is asked.
#[utoipa::path(
    get, path = "/cluster", tag = "node",
    responses(
        (status = 200, description = "What this node knows.", body = ClusterBody),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn cluster(State(door): State<Door>) -> Answer {
    let status = door.service.status_of_node();
    let body = ClusterBody {
        cluster_id: status.cluster_id.to_string(),
        node: status.node_id,
        leader: status.leader,
        nodes: status.members.iter().map(node).collect(),
        revision: status.revision.get(),
        cluster_time_ms: status.cluster_time.as_ms(),
    };
    ok(Ok(Stamped { body, position: door.service.position() }))
}

fn node(member: &MemberStatus) -> NodeBody {
    NodeBody {
        id: member.id,
        role: role(member.role),
        http: member.http.clone(),
        native: member.native.clone(),
        zone: member.zone.clone(),
        healthy: member.healthy,
        applied_index: member.applied_index,
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Leader => "leader",
        Role::Follower => "follower",
        Role::Candidate => "candidate",
        Role::Learner => "learner",
    }
}
