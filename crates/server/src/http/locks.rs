//! The calls about one lock, and lists of locks.

use super::answer::{Answer, answer, grant, ok};
use super::calls::PassedOn;
use super::door::{Door, From, Gone};
use super::input::Resource;
use super::query::{number, parameters};
use crate::service::{AcquireAnswer, Stamped};
use axum::extract::{RawQuery, Request};
use http::StatusCode;
use kunci_api::{
    AcquireRequest, CancelBody, CancelRequest, Code, ForceReleaseBody, ForceReleaseRequest, GrantBody,
    HistoryBody, Invalid, ListBody, Problem, QueueBody, QueuedBody, ReleaseBody, ReleaseRequest, RenewBody,
    RenewRequest, StatusBody,
};

/// A page of this many when nothing is said.
const PAGE_DEFAULT: u64 = 100;
/// A page never has more.
const PAGE_MAX: u64 = 1_000;

/// Take a resource, or queue for it.
///
/// Held open for at most 20 s while it waits; then 202, and the client calls again with the same `requestId`. When the
/// client closes the connection, its waiter is detached: it keeps its place for the waiter grace and is passed over
/// meanwhile.
#[utoipa::path(
    post, path = "/locks/{resource}/acquire", tag = "locks",
    params(("resource" = String, Path, description = "The resource's name, percent-encoded as one segment: `orders%2F42`. 1 to 256 bytes decoded.")),
    request_body = AcquireRequest,
    responses(
        (status = 200, description = "Granted.", body = GrantBody),
        (status = 202, description = "Still queued: call again with the same `requestId`.", body = QueuedBody),
        (status = 409, description = "Refused: `held`, `lock_delay`, `timed_out`, `cancelled`, `superseded`, `lease_ended` or `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn acquire(
    door: Door,
    Resource(resource): Resource,
    gone: Gone,
    from: From,
    request: Request,
) -> Answer {
    let drawn = request.extensions().get().and_then(PassedOn::request_id);
    let body: AcquireRequest = door.json(request).await?;
    let asked = body.read().map_err(|invalid| door.service.refuse(invalid))?;
    if gone.0.is_cancelled() {
        let detail = "the peer closed the connection before its request was served; nothing was proposed";
        return Err(door.service.refuse(Problem::new(Code::Overloaded, detail)).into());
    }
    let mut call = door.service.acquire(resource, asked, drawn, from.origin()).await?;
    let answered = tokio::select! {
        biased;
        // Nobody waits for the answer any more: the call is dropped, which detaches its waiter.
        () = gone.0.cancelled() => return Err(call.ended_early().into()),
        answered = call.answer(door.limits.hold) => answered?,
        () = door.waits_end() => return Err(call.ended_early().into()),
    };
    let Stamped { body, position } = answered;
    match body {
        AcquireAnswer::Granted(body) => Ok(grant(Stamped { body, position }, call)),
        AcquireAnswer::Queued(body) => answer(StatusCode::ACCEPTED, Ok(Stamped { body, position })),
    }
}

/// Set a lease back to its full time.
#[utoipa::path(
    post, path = "/locks/{resource}/renew", tag = "locks",
    params(("resource" = String, Path, description = "The resource's name, percent-encoded.")),
    request_body = RenewRequest,
    responses(
        (status = 200, description = "Renewed.", body = RenewBody),
        (status = 409, description = "Not the caller's lease, or ended: `lease_ended` or `not_holder`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn renew(door: Door, Resource(resource): Resource, from: From, request: Request) -> Answer {
    let body: RenewRequest = door.json(request).await?;
    let renewed = body.read(resource).map_err(|invalid| door.service.refuse(invalid))?;
    ok(door.service.renew(renewed, from.origin()).await)
}

/// End a lease by its holder's wish. The release itself grants the resource to the first waiter.
#[utoipa::path(
    post, path = "/locks/{resource}/release", tag = "locks",
    params(("resource" = String, Path, description = "The resource's name, percent-encoded.")),
    request_body = ReleaseRequest,
    responses(
        (status = 200, description = "Released, now or by an earlier call.", body = ReleaseBody),
        (status = 409, description = "Not the caller's lease, or ended otherwise: `lease_ended` or `not_holder`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn release(
    door: Door,
    Resource(resource): Resource,
    from: From,
    request: Request,
) -> Answer {
    let body: ReleaseRequest = door.json(request).await?;
    let proof = body.read().map_err(|invalid| door.service.refuse(invalid))?;
    ok(door.service.release(resource, proof, from.origin()).await)
}

/// End a lease by its holder's wish: the same as `POST /locks/{resource}/release`.
#[utoipa::path(
    delete, path = "/locks/{resource}", tag = "locks",
    params(("resource" = String, Path, description = "The resource's name, percent-encoded.")),
    request_body = ReleaseRequest,
    responses(
        (status = 200, description = "Released, now or by an earlier call.", body = ReleaseBody),
        (status = 409, description = "Not the caller's lease, or ended otherwise: `lease_ended` or `not_holder`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete(door: Door, resource: Resource, from: From, request: Request) -> Answer {
    release(door, resource, from, request).await
}

/// Leave the queue, or make sure that a request never enters it.
///
/// When the grant came first, the answer is that grant, and the caller releases it.
#[utoipa::path(
    post, path = "/locks/{resource}/cancel", tag = "locks",
    params(("resource" = String, Path, description = "The resource's name, percent-encoded.")),
    request_body = CancelRequest,
    responses(
        (status = 200, description = "Cancelled; or, when `acquired` is true, the grant that came first, as an acquire answers it.", body = CancelBody),
        (status = 409, description = "The request was granted and is over: `lease_ended`; or belongs to another resource: `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn cancel(door: Door, Resource(resource): Resource, from: From, request: Request) -> Answer {
    let body: CancelRequest = door.json(request).await?;
    let cancelled = body.read().map_err(|invalid| door.service.refuse(invalid))?;
    let Stamped { body, position } = door.service.cancel(resource, cancelled, from.origin()).await?;
    match body {
        Ok(body) => ok(Ok(Stamped { body, position })),
        Err(granted) => ok(Ok(Stamped { body: granted, position })),
    }
}

/// End a lease by an operator's wish.
#[utoipa::path(
    post, path = "/locks/{resource}/force-release", tag = "locks",
    params(("resource" = String, Path, description = "The resource's name, percent-encoded.")),
    request_body = ForceReleaseRequest,
    responses(
        (status = 200, description = "The lease is over.", body = ForceReleaseBody),
        (status = 409, description = "Another lease or none is current: `not_holder`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn force_release(
    door: Door,
    Resource(resource): Resource,
    from: From,
    request: Request,
) -> Answer {
    let body: ForceReleaseRequest = door.json(request).await?;
    let forced = body.read().map_err(|invalid| door.service.refuse(invalid))?;
    ok(door.service.force_release(resource, forced, from.origin()).await)
}

/// How a resource stands; a free one is an answer too.
#[utoipa::path(
    get, path = "/locks/{resource}", tag = "locks",
    params(("resource" = String, Path, description = "The resource's name, percent-encoded.")),
    responses(
        (status = 200, description = "Its status.", body = StatusBody),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn status(door: Door, Resource(resource): Resource) -> Answer {
    ok(door.service.status(resource).await)
}

/// Who waits for a resource, in order.
#[utoipa::path(
    get, path = "/locks/{resource}/queue", tag = "locks",
    params(("resource" = String, Path, description = "The resource's name, percent-encoded.")),
    responses(
        (status = 200, description = "Its waiters.", body = QueueBody),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn queue(door: Door, Resource(resource): Resource) -> Answer {
    ok(door.service.queue(resource).await)
}

/// What happened to a resource, as far back as events are kept.
#[utoipa::path(
    get, path = "/locks/{resource}/history", tag = "locks",
    params(
        ("resource" = String, Path, description = "The resource's name, percent-encoded."),
        ("limit" = Option<u64>, Query, description = "Only the last so many: 1 to 1,000. Without it: all."),
    ),
    responses(
        (status = 200, description = "Its events, oldest first.", body = HistoryBody),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn history(door: Door, Resource(resource): Resource, RawQuery(query): RawQuery) -> Answer {
    let read = parameters(query.as_deref(), ["limit"]);
    let [limit] = read.map_err(|invalid| door.service.refuse(invalid))?;
    let limit = limit.map(|text| page(Some(&text))).transpose();
    let limit = limit.map_err(|invalid| door.service.refuse(invalid))?;
    ok(door.service.last_events(resource, limit.unwrap_or(usize::MAX)).await)
}

/// The resources that are held, closed or waited for, in order of name.
#[utoipa::path(
    get, path = "/locks", tag = "locks",
    params(
        ("prefix" = Option<String>, Query, description = "Only names that begin with this."),
        ("after" = Option<String>, Query, description = "Only names after this one: the `next` of the page before."),
        ("limit" = Option<u64>, Query, description = "At most so many: 1 to 1,000, default 100."),
    ),
    responses(
        (status = 200, description = "One page.", body = ListBody),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(door: Door, RawQuery(query): RawQuery) -> Answer {
    let read = parameters(query.as_deref(), ["prefix", "after", "limit"]);
    let [prefix, after, limit] = read.map_err(|invalid| door.service.refuse(invalid))?;
    let limit = page(limit.as_deref()).map_err(|invalid| door.service.refuse(invalid))?;
    ok(door.service.list(prefix.as_deref().unwrap_or_default(), after.as_deref(), limit).await)
}

/// The resources with the longest queues, longest first.
#[utoipa::path(
    get, path = "/hot", tag = "locks",
    params(("limit" = Option<u64>, Query, description = "At most so many: 1 to 1,000, default 100.")),
    responses(
        (status = 200, description = "Those that are waited for.", body = ListBody),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn hot(door: Door, RawQuery(query): RawQuery) -> Answer {
    let read = parameters(query.as_deref(), ["limit"]);
    let [limit] = read.map_err(|invalid| door.service.refuse(invalid))?;
    let limit = page(limit.as_deref()).map_err(|invalid| door.service.refuse(invalid))?;
    ok(door.service.hot(limit).await)
}

/// The resources whose leases or lock-delays end next, the next one first.
///
/// A holder renews at a third of its lease's time: who stays here is late.
#[utoipa::path(
    get, path = "/expiring", tag = "locks",
    params(("limit" = Option<u64>, Query, description = "At most so many: 1 to 1,000, default 100.")),
    responses(
        (status = 200, description = "Those that end next.", body = ListBody),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn expiring(door: Door, RawQuery(query): RawQuery) -> Answer {
    let read = parameters(query.as_deref(), ["limit"]);
    let [limit] = read.map_err(|invalid| door.service.refuse(invalid))?;
    let limit = page(limit.as_deref()).map_err(|invalid| door.service.refuse(invalid))?;
    ok(door.service.expiring(limit).await)
}

fn page(limit: Option<&str>) -> Result<usize, Invalid> {
    let limit = limit.map_or(Ok(PAGE_DEFAULT), |text| number("limit", text, 1, PAGE_MAX))?;
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}
