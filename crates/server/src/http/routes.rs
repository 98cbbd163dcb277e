//! Which path is whose.
//!
//! Owns: the table of paths, and the answer for those that aren't in it.

use super::answer::Failure;
use super::forward::{Answered, Way, to_leader};
use super::front::Front;
use super::{audit, cluster, dashboard, events, health, init, leases, locks, metrics, openapi, policy};
use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};
use http::{Method, Uri};
use kunci_api::{Code, Problem};

/// Every path. Those about the node itself it answers by itself, and all others the leader.
pub(super) fn router(front: Front) -> Router {
    let way =
        |answer, bytes_max| from_fn_with_state(Way { front: front.clone(), answer, bytes_max }, to_leader);
    let leader = way(Answered::AtOnce, front.limits.body_bytes_max);
    let waiting = way(Answered::WhileClientWaits, front.limits.body_bytes_max);
    let large = way(Answered::AtOnce, front.limits.renew_many_bytes_max);
    let asked = |route: MethodRouter<Front>| route.route_layer(leader.clone());
    Router::new()
        .route("/locks", asked(get(locks::list)))
        .route("/locks/{resource}", asked(get(locks::status).delete(locks::delete)))
        .route("/locks/{resource}/acquire", post(locks::acquire).route_layer(waiting.clone()))
        .route("/locks/{resource}/renew", asked(post(locks::renew)))
        .route("/locks/{resource}/release", asked(post(locks::release)))
        .route("/locks/{resource}/cancel", asked(post(locks::cancel)))
        .route("/locks/{resource}/force-release", asked(post(locks::force_release)))
        .route("/locks/{resource}/queue", asked(get(locks::queue)))
        .route("/locks/{resource}/history", asked(get(locks::history)))
        .route("/hot", asked(get(locks::hot)))
        .route("/expiring", asked(get(locks::expiring)))
        .route("/leases/renew", post(leases::renew_many).route_layer(large))
        .route("/events", get(events::events).route_layer(waiting))
        .route("/policy", asked(get(policy::policy).put(policy::change_policy)))
        .route("/fencing-rejections", post(leases::report_fencing_rejection))
        .route("/audit", get(audit::audit))
        .route("/cluster", get(cluster::cluster))
        .route("/cluster/init", post(init::init))
        .route("/cluster/add", asked(post(cluster::add)))
        .route("/cluster/replace", asked(post(cluster::replace)))
        .route("/cluster/remove", asked(post(cluster::remove)))
        .route("/cluster/transfer", asked(post(cluster::transfer)))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .route("/openapi.json", get(openapi::openapi))
        .merge(dashboard::routes())
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .with_state(front)
}

async fn no_such_path(State(front): State<Front>, uri: Uri) -> Failure {
    let detail = format!("there is no path {}; a / inside a resource name is sent as %2F", uri.path());
    front.refuse(Problem::new(Code::NotFound, detail))
}

async fn no_such_method(State(front): State<Front>, method: Method, uri: Uri) -> Failure {
    let detail = format!("{} doesn't take {method}; the header Allow says what it takes", uri.path());
    front.refuse(Problem::new(Code::MethodNotAllowed, detail))
}
