//! `/metrics`: this node's numbers in Prometheus' text format.
//!
//! Owns: their names. Never: a label that grows with resources, owners or peers.

use super::front::Front;
use crate::service::Service;
use axum::extract::State;
use http::HeaderName;
use http::header::CONTENT_TYPE;
use std::fmt::{self, Write as _};

/// This node's numbers, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "node",
    responses((status = 200, description = "Prometheus' text format, version 0.0.4.", body = String, content_type = "text/plain"))
)]
pub(super) async fn metrics(State(front): State<Front>) -> ([(HeaderName, &'static str); 1], String) {
    let mut text = String::new();
    // Writing to a text can't fail.
    let _ = of_door(&front, &mut text);
    if let Some(service) = front.service.get() {
        let _ = of_service(service, &mut text);
    }
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

fn of_door(front: &Front, text: &mut String) -> fmt::Result {
    gauge(text, "kunci_http_connections", "Open HTTP connections.", front.open_connections() as u64)?;
    let name = "kunci_http_answers_total";
    writeln!(text, "# HELP {name} HTTP answers by class of status.\n# TYPE {name} counter")?;
    for (class, count) in front.answers() {
        writeln!(text, "{name}{{class=\"{class}xx\"}} {count}")?;
    }
    let help = "Calls that this node passed on to the leader, tries after a change of leader included.";
    counter(text, "kunci_http_passed_on_total", help, front.passed_on())
}

fn of_service(service: &Service, text: &mut String) -> fmt::Result {
    let status = service.status_of_node();
    let leads = u64::from(status.leader == Some(status.node_id));
    let gauges = [
        ("kunci_leads", "1 while this node leads.", leads),
        (
            "kunci_serving",
            "1 while requests about locks are answered, here or by a leader that this node knows.",
            u64::from(status.serving),
        ),
        ("kunci_applied_index", "The last log entry that was applied.", status.applied_index),
        ("kunci_revision", "Ownership and queue events in the cluster's life.", status.revision.get()),
        ("kunci_leases", "Leases that are current.", status.counts.held),
        ("kunci_waiters", "Requests that wait.", status.counts.waiters),
        ("kunci_requests", "Requests that are remembered, ended or not.", status.counts.requests),
        ("kunci_waiting_calls", "Calls that wait on this node.", service.waiting_calls() as u64),
    ];
    for (name, help, value) in gauges {
        gauge(text, name, help, value)?;
    }
    let name = "kunci_refusals_total";
    writeln!(text, "# HELP {name} Refused calls by code.\n# TYPE {name} counter")?;
    for (code, count) in service.counters().refusals() {
        writeln!(text, "{name}{{code=\"{}\"}} {count}", code.as_str())?;
    }
    let help = "Stale tokens that protected resources reported.";
    counter(text, "kunci_fencing_rejections_total", help, service.counters().fencing_rejections())
}

fn gauge(text: &mut String, name: &str, help: &str, value: u64) -> fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}")
}

fn counter(text: &mut String, name: &str, help: &str, value: u64) -> fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}")
}
