//! The calls about the limits.

use super::answer::{Answer, ok};
use super::door::{Door, From};
use axum::extract::Request;
use kunci_api::{PolicyAnswer, PolicyChangeRequest, Problem};

/// The limits in force.
#[utoipa::path(
    get, path = "/policy", tag = "policy",
    responses(
        (status = 200, description = "The limits, and the revision at which they were set.", body = PolicyAnswer),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn policy(door: Door) -> Answer {
    ok(door.service.policy().await)
}

/// Change the limits of the whole cluster.
#[utoipa::path(
    put, path = "/policy", tag = "policy",
    request_body = PolicyChangeRequest,
    responses(
        (status = 200, description = "The limits now in force.", body = PolicyAnswer),
        (status = 409, description = "Others were in force by then: `policy_changed`.", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "They can't work together: `out_of_policy`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn change_policy(door: Door, from: From, request: Request) -> Answer {
    let change: PolicyChangeRequest = door.json(request).await?;
    ok(door.service.change_policy(&change, from.origin()).await)
}
