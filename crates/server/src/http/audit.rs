//! `GET /audit`: what this node has recorded, newest first.
//!
//! Owns: how much work a call may be: so many bytes of files, and few calls at a time. Never: another node's records.

use super::answer::{Answer, ok};
use super::door::Door;
use super::query::{number, parameters};
use crate::audit::{Search, Sought, time_ms};
use crate::service::Stamped;
use axum::extract::RawQuery;
use kunci_api::{AuditBody, Code, Invalid, Problem};
use std::sync::Arc;

/// A page of this many when nothing is said.
const PAGE_DEFAULT: u64 = 100;
/// A page never has more.
const PAGE_MAX: u64 = 1_000;
/// A call looks through so many bytes at most, and says where to go on.
const SCAN_BYTES_MAX: u64 = 16 << 20;
/// The largest number that JSON and JavaScript carry exactly.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// What happened to locks, from the audit log of this very node, newest first.
///
/// One call looks through at most 16 MiB; `next` says where to go on, with fewer records than asked for or none at all.
#[utoipa::path(
    get, path = "/audit", tag = "node",
    params(
        ("resource" = Option<String>, Query, description = "Only of this resource."),
        ("prefix" = Option<String>, Query, description = "Only of resources whose names begin like this."),
        ("owner" = Option<String>, Query, description = "Only of this owner."),
        ("kind" = Option<String>, Query, description = "Only of these kinds, with commas between them."),
        ("token" = Option<u64>, Query, description = "Only of the lease with this fencing token."),
        ("from" = Option<String>, Query, description = "Not before this wall time: RFC 3339, or milliseconds since 1970."),
        ("to" = Option<String>, Query, description = "Before this wall time."),
        ("before" = Option<String>, Query, description = "Go on where another answer said `next`."),
        ("limit" = Option<u64>, Query, description = "At most so many: 1 to 1,000, default 100."),
    ),
    responses(
        (status = 200, description = "The records; gaps are always among them.", body = AuditBody),
        (status = 404, description = "This node keeps no audit log: `not_found`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn audit(door: Door, RawQuery(query): RawQuery) -> Answer {
    let search = search(query.as_deref()).map_err(|invalid| door.service.refuse(invalid))?;
    let Some(audit) = door.service.audit() else {
        let detail = "this node keeps no audit log: it was started with --audit=false";
        return Err(door.service.refuse(Problem::new(Code::NotFound, detail)).into());
    };
    let Ok(permit) = Arc::clone(&door.searches).try_acquire_owned() else {
        let detail = "this node looks through its audit log for others already";
        return Err(door.service.refuse(Problem::new(Code::Overloaded, detail)).into());
    };
    let folder = audit.folder().to_owned();
    let found = kunci_process::blocking(move || {
        let _permit = permit;
        search.run(&folder)
    });
    match found.await {
        Ok(Ok(found)) => {
            let body = AuditBody {
                records: found.records,
                next: found.next,
                scanned_bytes: found.scanned_bytes,
                revision: door.service.revision(),
            };
            ok(Ok(Stamped { body, position: door.service.position() }))
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "can't read the audit log");
            let detail = format!("this node can't read its audit log: {error}");
            Err(door.service.refuse(Problem::new(Code::Overloaded, detail)).into())
        }
        // The node stops.
        Err(_) => Err(door.service.refuse(Problem::new(Code::Overloaded, "this node is stopping")).into()),
    }
}

fn search(query: Option<&str>) -> Result<Search, Invalid> {
    let names = ["resource", "prefix", "owner", "kind", "token", "from", "to", "before", "limit"];
    let [resource, prefix, owner, kind, token, from, to, before, limit] = parameters(query, names)?;
    let token = token.map(|text| number("token", &text, 1, NUMBER_MAX)).transpose()?;
    let limit = limit.map_or(Ok(PAGE_DEFAULT), |text| number("limit", &text, 1, PAGE_MAX))?;
    let kinds = kind.map(|kinds| kinds.split(',').map(str::to_owned).collect()).unwrap_or_default();
    let sought = Sought {
        resource,
        prefix,
        owner,
        kinds,
        token,
        from_ms: from.map(|text| time("from", &text)).transpose()?,
        to_ms: to.map(|text| time("to", &text)).transpose()?,
    };
    if let Some(before) = &before
        && !Search::is_place(before)
    {
        return Err(invalid("before", before, "what an answer called `next`"));
    }
    Ok(Search {
        sought,
        before,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        bytes_max: SCAN_BYTES_MAX,
    })
}

fn time(field: &str, text: &str) -> Result<u64, Invalid> {
    let ms = text.parse().ok().or_else(|| time_ms(text));
    ms.ok_or_else(|| invalid(field, text, "a time such as 2026-11-30T03:12:00Z, or milliseconds since 1970"))
}

fn invalid(field: &str, found: &str, expected: &str) -> Invalid {
    Invalid::Value { field: field.to_owned(), text: format!("found `{found}`, expected {expected}") }
}
