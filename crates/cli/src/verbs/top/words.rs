//! Cells of tables, in words: the same on a live screen and on paper.

use super::clean::clean;
use super::keys::Tab;
use super::model::{Model, NodeRow, Operation, Reach, Totals};
use super::told::{Event, Lock};
use crate::duration::human;
use kunci_client::Moment;

/// What isn't known.
pub(super) const NONE: &str = "-";

/// The heads of the table of nodes.
pub(super) const NODES: [&str; 10] =
    ["ID", "ROLE", "ZONE", "STATE", "APPLIED", "LAG", "DISK FREE", "FSYNC P99", "CONNS", "HTTP"];
/// The heads of a list of locks.
pub(super) const LOCKS: [&str; 6] = ["RESOURCE", "HOLDER", "TOKEN", "ENDS IN", "HELD FOR", "WAITING"];
/// The heads of a queue.
pub(super) const QUEUE: [&str; 5] = ["#", "OWNER", "WAITED", "GIVES UP IN", "ATTACHED"];
/// The heads of a list of events.
pub(super) const EVENTS: [&str; 5] = ["REVISION", "WHAT", "RESOURCE", "OWNER", "TOKEN"];

fn or_none<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

/// A text, or the sign for none.
pub(super) fn some(text: &str) -> String {
    if text.is_empty() { NONE.to_owned() } else { text.to_owned() }
}

/// A node's cells.
pub(super) fn node(row: &NodeRow) -> [String; 10] {
    let state = match &row.reach {
        Reach::No(..) => "UNREACHABLE",
        Reach::Silent(_) => "SILENT",
        Reach::Yes if row.role == "new" => "no cluster",
        Reach::Yes | Reach::Unknown if !row.healthy => "UNHEALTHY",
        Reach::Yes if row.disk == "low" => "DISK LOW",
        Reach::Yes if row.disk == "stuck" => "DISK STUCK",
        Reach::Yes => "ok",
        Reach::Unknown => "?",
    };
    [
        or_none(row.id),
        some(&row.role),
        some(&row.zone),
        state.to_owned(),
        or_none(row.applied),
        or_none(row.lag),
        row.disk_free.map_or_else(|| NONE.to_owned(), bytes),
        row.fsync_p99_ms.map_or_else(|| NONE.to_owned(), ms),
        row.connections.map_or_else(|| NONE.to_owned(), count),
        row.http.clone(),
    ]
}

/// A lock's cells; `left` is what is left of its lease by now, in ms.
pub(super) fn lock(lock: &Lock, left: Option<u64>) -> [String; 6] {
    let ends_in = match (left, lock.lock_delay_ms) {
        (Some(0), _) => "now".to_owned(),
        (Some(left), _) => human(left / 100 * 100),
        (None, Some(delay)) => format!("closed {}", human(delay)),
        (None, None) => NONE.to_owned(),
    };
    [
        clean(&lock.resource),
        or_none(lock.holder.as_ref()),
        or_none(lock.token),
        ends_in,
        or_none(lock.held_ms.map(|held| human(held / 1_000 * 1_000))),
        lock.waiting.to_string(),
    ]
}

/// An event's cells.
pub(super) fn event(event: &Event) -> [String; 5] {
    let what = match &event.reason {
        Some(reason) => format!("{}: {reason}", event.kind),
        None => event.kind.clone(),
    };
    [event.revision.to_string(), what, some(&event.resource), some(&event.owner), or_none(event.token)]
}

/// The locks of a list, with what is left of each.
pub(super) fn list(model: &Model, tab: Tab, now: Moment) -> Vec<(&Lock, Option<u64>)> {
    match tab {
        Tab::Locks => {
            model.locks.value.iter().map(|lock| (lock, model.left_ms(&model.locks, lock, now))).collect()
        }
        Tab::Hot => model.hot.value.iter().map(|lock| (lock, model.left_ms(&model.hot, lock, now))).collect(),
        Tab::Expiring => model.expiring(now).into_iter().map(|(lock, left)| (lock, Some(left))).collect(),
        Tab::Events => Vec::new(),
    }
}

/// One line about who leads.
pub(super) fn title(model: &Model, now: Moment) -> String {
    let view = model.view(now);
    let id = view.and_then(|view| view.id.as_deref()).map_or_else(String::new, |id| format!(" {id}"));
    let leader = match model.leader(now) {
        Some(leader) => format!("node {leader} leads"),
        None => "nobody leads".to_owned(),
    };
    let revision = view.map_or(0, |view| view.revision);
    format!("cluster{id}: {leader}, revision {revision}")
}

/// What the numbers say, a few words each.
pub(super) fn totals(totals: &Totals) -> Vec<String> {
    let operation = |name: &str, of: &Operation| {
        let rate = of.per_second.map_or_else(|| NONE.to_owned(), rate);
        let took = match (of.p50_ms, of.p99_ms) {
            (Some(p50), Some(p99)) => format!(", p50 {} p99 {}", ms(p50), ms(p99)),
            _ => String::new(),
        };
        format!("{name} {rate}/s{took}")
    };
    let per_second =
        |name: &str, of: Option<f64>| format!("{name} {}/s", of.map_or_else(|| NONE.to_owned(), rate));
    let gauge = |name: &str, of: Option<f64>| format!("{name} {}", of.map_or_else(|| NONE.to_owned(), count));
    vec![
        gauge("held", totals.held),
        gauge("waiting", totals.waiting),
        gauge("contended", totals.contended),
        operation("acquire", &totals.acquire),
        operation("renew", &totals.renew),
        operation("release", &totals.release),
        operation("commit", &totals.commit),
        per_second("expired", totals.expired),
        per_second("failing", totals.failing),
        per_second("renewals lost", totals.lost),
        per_second("fencing rejections", totals.fencing),
        gauge("term", totals.term),
        gauge("leader changes", totals.leader_changes),
        gauge("batcher queue", totals.queue),
    ]
}

/// Milliseconds with as many digits as matter.
fn ms(ms: f64) -> String {
    match ms {
        ..10.0 => format!("{ms:.1}ms"),
        ..10_000.0 => format!("{ms:.0}ms"),
        _ => format!("{:.0}s", ms / 1_000.0),
    }
}

fn rate(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1}") } else { count(rate) }
}

/// Whole numbers; large ones in thousands.
fn count(number: f64) -> String {
    match number {
        ..100_000.0 => format!("{number:.0}"),
        ..10_000_000.0 => format!("{:.0}k", number / 1e3),
        _ => format!("{:.0}M", number / 1e6),
    }
}

/// Bytes in the unit in which they have at most four digits.
fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut left = bytes;
    let mut units = UNITS.iter().peekable();
    while let Some(unit) = units.next() {
        if left < 1_024.0 || units.peek().is_none() {
            return if left < 10.0 { format!("{left:.1} {unit}") } else { format!("{left:.0} {unit}") };
        }
        left /= 1_024.0;
    }
    NONE.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.26, 9.0, 123.4, 60_000.0].map(ms), ["0.3ms", "9.0ms", "123ms", "60s"]);
        assert_eq!([0.0, 0.5, 12.0, 250_000.0].map(rate), ["0.0", "0.5", "12", "250k"]);
        assert_eq!([512.0, 2048.0, 1.5e12].map(bytes), ["512 B", "2.0 KiB", "1.4 TiB"]);
    }

    #[test]
    fn a_resource_with_an_escape_sequence_is_shown_without_it() {
        let evil = Lock { resource: "a\u{1b}[2J".to_owned(), ..Lock::default() };
        assert_eq!(lock(&evil, None)[0], "a�[2J");
    }
}
