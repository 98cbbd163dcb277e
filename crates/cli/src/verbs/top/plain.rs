//! One screen on paper: for pipes, and for terminals that can't be drawn on; and the same as JSON.
//!
//! Owns: both forms. Never: an escape sequence.

use super::keys::Tab;
use super::model::{Model, NodeRow, Operation, Reach};
use super::words;
use crate::output::table;
use kunci_client::Moment;
use serde_json::{Value, json};

/// As many rows of each list as a person reads.
const ROWS_MAX: usize = 20;

/// What is known, as text.
pub(super) fn text(model: &Model, now: Moment) -> String {
    let mut text = words::title(model, now);
    for alarm in model.alarms(now) {
        text.push_str(&format!("\n! {alarm}"));
    }
    let rows: Vec<_> = model.rows(now).iter().map(|row| words::node(row).to_vec()).collect();
    text.push_str(&format!("\n\n{}\n\n", table(&words::NODES, &rows)));
    for words in words::totals(&model.totals(now)).chunks(4) {
        text.push_str(&format!("{}\n", words.join(" · ")));
    }
    for tab in [Tab::Locks, Tab::Hot, Tab::Expiring] {
        let list = words::list(model, tab, now);
        // Whoever has nothing hot needn't read that.
        if list.is_empty() && tab != Tab::Locks {
            continue;
        }
        let rest = list.len().saturating_sub(ROWS_MAX);
        let rows: Vec<_> =
            list.iter().take(ROWS_MAX).map(|(lock, left)| words::lock(lock, *left).to_vec()).collect();
        text.push_str(&format!("\n{}\n", tab.name()));
        match (rows.is_empty(), &model.locks.trouble) {
            (true, Some(why)) => text.push_str(&format!("not read: {why}\n")),
            (true, None) => text.push_str("nothing is held or waited for\n"),
            (false, _) => text.push_str(&format!("{}\n", table(&words::LOCKS, &rows))),
        }
        if rest > 0 {
            text.push_str(&format!("and {rest}{} more\n", if model.has_more { " or" } else { "" }));
        }
    }
    text
}

/// What is known, as one JSON object.
pub(super) fn json(model: &Model, now: Moment) -> Value {
    let view = model.view(now);
    let totals = model.totals(now);
    let list = |tab| {
        words::list(model, tab, now).into_iter().map(|(lock, left)| json!({
        "resource": lock.resource, "holder": lock.holder, "fencingToken": lock.token, "remainingMs": left,
        "heldMs": lock.held_ms, "ttlMs": lock.ttl_ms, "lockDelayMs": lock.lock_delay_ms, "metadata": lock.metadata,
        "queueLength": lock.waiting,
    })).collect::<Vec<Value>>()
    };
    json!({
        "clusterId": view.and_then(|view| view.id.clone()),
        "leader": model.leader(now),
        "revision": view.map(|view| view.revision),
        "alarms": model.alarms(now),
        "nodes": model.rows(now).iter().map(node).collect::<Vec<_>>(),
        "totals": {
            "acquire": operation(&totals.acquire),
            "renew": operation(&totals.renew),
            "release": operation(&totals.release),
            "commit": operation(&totals.commit),
            "expiredPerSecond": totals.expired,
            "failingPerSecond": totals.failing,
            "renewalsLostPerSecond": totals.lost,
            "fencingRejectionsPerSecond": totals.fencing,
            "held": totals.held,
            "waiting": totals.waiting,
            "contended": totals.contended,
            "batcherQueue": totals.queue,
            "term": totals.term,
            "leaderChanges": totals.leader_changes,
        },
        "locks": list(Tab::Locks),
        "hasMore": model.has_more,
        "hot": list(Tab::Hot),
        "expiring": list(Tab::Expiring),
        "locksTrouble": model.locks.trouble,
    })
}

fn operation(of: &Operation) -> Value {
    json!({ "perSecond": of.per_second, "p50Ms": of.p50_ms, "p99Ms": of.p99_ms })
}

fn node(row: &NodeRow) -> Value {
    let trouble = match &row.reach {
        Reach::No(_, why) => Some(why.as_str()),
        Reach::Silent(_) => Some("it answered a while ago, and not since"),
        Reach::Yes | Reach::Unknown => None,
    };
    json!({
        "id": row.id, "role": row.role, "zone": row.zone, "http": row.http, "healthy": row.healthy, "disk": row.disk,
        "answers": row.reach == Reach::Yes, "trouble": trouble, "appliedIndex": row.applied, "lag": row.lag,
        "diskFreeBytes": row.disk_free, "fsyncP99Ms": row.fsync_p99_ms, "connections": row.connections,
    })
}
