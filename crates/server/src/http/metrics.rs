//! `/metrics`: this node's numbers in Prometheus' text format.
//!
//! Owns: their names. Never: a label that grows with resources, owners or peers.

use super::door::Door;
use axum::extract::State;
use http::HeaderName;
use http::header::CONTENT_TYPE;
use std::fmt::{self, Write as _};

/// This node's numbers, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "node",
    responses((status = 200, description = "Prometheus' text format, version 0.0.4.", body = String, content_type = "text/plain"))
)]
pub(super) async fn metrics(State(door): State<Door>) -> ([(HeaderName, &'static str); 1], String) {
    let mut text = String::new();
    // Writing to a text can't fail.
    let _ = write(&door, &mut text);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

fn write(door: &Door, text: &mut String) -> fmt::Result {
    let status = door.service.status_of_node();
    let gauges = [
        ("kunci_serving", "1 while this node serves requests about locks.", u64::from(status.serving)),
        ("kunci_applied_index", "The last log entry that was applied.", status.applied_index),
        ("kunci_revision", "Ownership and queue events in the cluster's life.", status.revision.get()),
        ("kunci_leases", "Leases that are current.", status.counts.held),
        ("kunci_waiters", "Requests that wait.", status.counts.waiters),
        ("kunci_requests", "Requests that are remembered, ended or not.", status.counts.requests),
        ("kunci_waiting_calls", "Calls that wait on this node.", door.service.waiting_calls() as u64),
        ("kunci_http_connections", "Open HTTP connections.", door.open_connections() as u64),
    ];
    for (name, help, value) in gauges {
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}")?;
    }
    let name = "kunci_http_answers_total";
    writeln!(text, "# HELP {name} HTTP answers by class of status.\n# TYPE {name} counter")?;
    for (class, count) in door.answers() {
        writeln!(text, "{name}{{class=\"{class}xx\"}} {count}")?;
    }
    let name = "kunci_refusals_total";
    writeln!(text, "# HELP {name} Refused calls by code.\n# TYPE {name} counter")?;
    for (code, count) in door.service.counters().refusals() {
        writeln!(text, "{name}{{code=\"{}\"}} {count}", code.as_str())?;
    }
    let (name, count) = ("kunci_fencing_rejections_total", door.service.counters().fencing_rejections());
    let help = "Stale tokens that protected resources reported.";
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}")
}
