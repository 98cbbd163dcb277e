//! The OpenAPI document: made from the handlers and bodies themselves.

use super::{audit, cluster, events, health, init, leases, locks, metrics, policy};
use http::HeaderName;
use http::header::CONTENT_TYPE;
use std::sync::LazyLock;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "kunci",
        description = "Locks with leases and fencing tokens. Every answer carries `revision` in its body (text formats excepted) and the headers `Kunci-Position` (log index and place in the entry), `Kunci-Cluster` and, when one is known, `Kunci-Leader` (`host:port` of the HTTP door of the node that leads). Any node takes any call and passes it on to the leader. Refusals are `application/problem+json` with a stable `code`."
    ),
    paths(
        locks::acquire,
        locks::renew,
        locks::release,
        locks::delete,
        locks::cancel,
        locks::force_release,
        locks::status,
        locks::queue,
        locks::history,
        locks::list,
        locks::hot,
        locks::expiring,
        leases::renew_many,
        leases::report_fencing_rejection,
        events::events,
        policy::policy,
        policy::change_policy,
        audit::audit,
        cluster::cluster,
        init::init,
        cluster::add,
        cluster::replace,
        cluster::remove,
        cluster::transfer,
        health::livez,
        health::readyz,
        metrics::metrics,
        openapi,
    ),
    components(schemas(kunci_api::GrantBody))
)]
struct Document;

static JSON: LazyLock<String> = LazyLock::new(|| {
    // The document is made of texts: JSON can say them all.
    let mut json = Document::openapi().to_pretty_json().unwrap_or_default();
    json.push('\n');
    json
});

/// The OpenAPI document, as it is served and committed.
pub fn openapi_json() -> &'static str {
    &JSON
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "node",
    responses((status = 200, description = "OpenAPI 3.1.", body = Object))
)]
pub(super) async fn openapi() -> ([(HeaderName, &'static str); 1], &'static str) {
    ([(CONTENT_TYPE, "application/json")], openapi_json())
}
