//! A record as a line for people, or as JSON.

use crate::exit::Failure;
use crate::output::{Form, Output};
use kunci_api::AuditRecord;

/// Writes one record.
pub(super) fn record(record: &AuditRecord, output: &Output) -> Result<(), Failure> {
    match output.form() {
        Form::Json => output.line(&serde_json::to_string(record).unwrap_or_default()),
        Form::Human => output.line(&text(record)),
    }
}

/// `2026-11-30T03:12:00.123Z  granted  orders/42  worker-7  token 77  from 10.0.0.5:4000`
pub(super) fn text(record: &AuditRecord) -> String {
    let mut text = format!("{}  {:<9}", record.wall_time, record.kind);
    let mut add = |part: String| {
        text.push_str("  ");
        text.push_str(&part);
    };
    if let Some(action) = &record.action {
        add(format!("{action}: {}", record.outcome.as_deref().unwrap_or("?")));
    }
    let names = [&record.resource, &record.owner];
    names.into_iter().flatten().for_each(|name| add(name.clone()));
    if let Some(caller) = &record.caller {
        add(format!("by {caller}"));
    }
    if let Some(token) = record.fencing_token {
        add(format!("token {token}"));
    }
    if let Some(ttl_ms) = record.ttl_ms {
        add(format!("for {}", crate::duration::human(ttl_ms)));
    }
    if let Some(lease) = &record.lease_fingerprint {
        add(format!("lease {lease}"));
    }
    if let Some(address) = &record.address {
        add(format!("from {address}"));
    }
    if let Some(voters) = &record.voters {
        add(format!("voters {voters:?} learners {:?}", record.learners.as_deref().unwrap_or_default()));
    }
    if let Some(policy) = &record.policy {
        add(policy.to_string());
    }
    if let Some(reason) = &record.reason {
        add(format!("({reason})"));
    }
    match (record.from_index, record.to_index) {
        (Some(from), Some(to)) => add(format!("log entries {from} to {to} aren't recorded")),
        (None, Some(to)) => add(format!("recorded up to log entry {to}")),
        _ => {}
    }
    if let Some(missing) = record.missing {
        add(format!("up to {missing} records are missing"));
    }
    if let Some(at) = &record.at {
        add(format!("at {at}"));
    }
    text
}
