//! Which path is whose.
//!
//! Owns: the table of paths, and the answer for those that aren't in it.

use super::answer::Failure;
use super::door::Door;
use super::{cluster, events, health, leases, locks, metrics, openapi, policy};
use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use http::{Method, Uri};
use kunci_api::{Code, Problem};

/// Every path.
pub(super) fn router(door: Door) -> Router {
    Router::new()
        .route("/locks", get(locks::list))
        .route("/locks/{resource}", get(locks::status).delete(locks::delete))
        .route("/locks/{resource}/acquire", post(locks::acquire))
        .route("/locks/{resource}/renew", post(locks::renew))
        .route("/locks/{resource}/release", post(locks::release))
        .route("/locks/{resource}/cancel", post(locks::cancel))
        .route("/locks/{resource}/force-release", post(locks::force_release))
        .route("/locks/{resource}/queue", get(locks::queue))
        .route("/locks/{resource}/history", get(locks::history))
        .route("/hot", get(locks::hot))
        .route("/leases/renew", post(leases::renew_many))
        .route("/events", get(events::events))
        .route("/policy", get(policy::policy).put(policy::change_policy))
        .route("/fencing-rejections", post(leases::report_fencing_rejection))
        .route("/cluster", get(cluster::cluster))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .route("/openapi.json", get(openapi::openapi))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .with_state(door)
}

async fn no_such_path(State(door): State<Door>, uri: Uri) -> Failure {
    let detail = format!("there is no path {}; a / inside a resource name is sent as %2F", uri.path());
    door.service.refuse(Problem::new(Code::NotFound, detail)).into()
}

async fn no_such_method(State(door): State<Door>, method: Method, uri: Uri) -> Failure {
    let detail = format!("{} doesn't take {method}; the header Allow says what it takes", uri.path());
    door.service.refuse(Problem::new(Code::MethodNotAllowed, detail)).into()
}
