//! `/metrics`: this node's numbers in Prometheus' text format.
//!
//! Never: which numbers there are; see `crate::metrics`.

use super::front::Front;
use crate::metrics;
use axum::extract::State;
use http::HeaderName;
use http::header::CONTENT_TYPE;

/// This node's numbers, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "node",
    responses((status = 200, description = "Prometheus' text format, version 0.0.4.", body = String, content_type = "text/plain"))
)]
pub(super) async fn metrics(State(front): State<Front>) -> ([(HeaderName, &'static str); 1], String) {
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], front.metrics())
}
