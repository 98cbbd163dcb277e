//! The calls about many leases, and what protected resources report.

use super::answer::{Answer, ok};
use super::door::{Door, From};
use axum::extract::Request;
use kunci_api::{
    Code, FencingRejectionBody, FencingRejectionRequest, LEASES_MAX, Problem, RenewManyBody, RenewManyRequest,
};

/// Set many leases back to their full time, in one log entry.
///
/// Each lease has its own result; one that isn't the caller's doesn't hold up the others.
#[utoipa::path(
    post, path = "/leases/renew", tag = "leases",
    request_body = RenewManyRequest,
    responses(
        (status = 200, description = "One result for each lease, in the order of the request.", body = RenewManyBody),
        (status = "default", description = "Refused as a whole: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn renew_many(door: Door, from: From, request: Request) -> Answer {
    let body: RenewManyRequest = door.json_up_to(request, door.limits.renew_many_bytes_max).await?;
    if body.count() > LEASES_MAX {
        let detail = format!("there are {} leases: expected at most {LEASES_MAX}", body.count());
        return Err(door.service.refuse(Problem::new(Code::TooLarge, detail)).into());
    }
    let leases = body.read().map_err(|invalid| door.service.refuse(invalid))?;
    ok(door.service.renew_many(leases, from.origin()).await)
}

/// A protected resource reports that it refused a stale token: counted and logged, by this node alone.
#[utoipa::path(
    post, path = "/fencing-rejections", tag = "leases",
    request_body = FencingRejectionRequest,
    responses(
        (status = 200, description = "The report was taken.", body = FencingRejectionBody),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn report_fencing_rejection(door: Door, request: Request) -> Answer {
    let body: FencingRejectionRequest = door.json(request).await?;
    let rejection = body.read().map_err(|invalid| door.service.refuse(invalid))?;
    ok(Ok(door.service.report_fencing_rejection(&rejection)))
}
