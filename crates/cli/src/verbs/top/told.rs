//! What nodes answer, read.
//!
//! Owns: the forms in which the rest of `kunci top` has it, cleaned for a terminal. Never: asks.

use super::clean::clean;
use crate::answer::{number, text};
use serde_json::Value;

/// A page of the list has no more.
pub(super) const LOCKS_MAX: usize = 1_000;
/// More members than a cluster has.
const MEMBERS_MAX: usize = 64;
/// More warnings than a person reads.
const WARNINGS_MAX: usize = 32;
/// More waiters than a screen has lines for.
const WAITERS_MAX: usize = 1_024;

/// What one node says of its cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cluster {
    /// The cluster's id.
    pub(super) id: Option<String>,
    /// The node that says it.
    pub(super) node_id: Option<u64>,
    /// Who leads, as far as it knows.
    pub(super) leader: Option<u64>,
    /// The members.
    pub(super) members: Vec<Member>,
    /// What an operator should look at.
    pub(super) warnings: Vec<String>,
    /// The revision of its state.
    pub(super) revision: u64,
}

/// One member.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Member {
    /// Its id.
    pub(super) id: u64,
    /// `leader` and so on.
    pub(super) role: String,
    /// `host:port` of its HTTP door.
    pub(super) http: String,
    /// Its failure zone; empty when it has none.
    pub(super) zone: String,
    /// Whether it can be counted on.
    pub(super) healthy: bool,
    /// `ok`, `low` or `stuck`; empty when that isn't known.
    pub(super) disk: String,
    /// The last log entry that it is known to have applied.
    pub(super) applied_index: u64,
}

/// How one resource stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lock {
    /// Its name, as it is sent.
    pub(super) resource: String,
    /// Who holds it.
    pub(super) holder: Option<String>,
    /// The token of the lease.
    pub(super) token: Option<u64>,
    /// How long the lease lasted when it was answered, in ms.
    pub(super) remaining_ms: Option<u64>,
    /// The lease's TTL, in ms.
    pub(super) ttl_ms: Option<u64>,
    /// For how long it was held, in ms.
    pub(super) held_ms: Option<u64>,
    /// How long a lock-delay keeps it closed, in ms.
    pub(super) lock_delay_ms: Option<u64>,
    /// What the holder said.
    pub(super) metadata: Option<String>,
    /// How many wait.
    pub(super) waiting: u64,
}

/// One waiter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Waiter {
    /// The place in the queue, from 1.
    pub(super) position: u64,
    /// Who waits.
    pub(super) owner: String,
    /// For how long, in ms.
    pub(super) waited_ms: u64,
    /// How long it would go on, in ms.
    pub(super) left_ms: u64,
    /// Whether somebody is there to take the lock.
    pub(super) attached: bool,
}

/// Something that happened to a lock.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Event {
    /// Its number.
    pub(super) revision: u64,
    /// What happened.
    pub(super) kind: String,
    /// To which resource; empty when to none.
    pub(super) resource: String,
    /// Whose lease or request.
    pub(super) owner: String,
    /// The token of the lease.
    pub(super) token: Option<u64>,
    /// Why it was ended by force.
    pub(super) reason: Option<String>,
}

/// All that is shown about one resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Detail {
    /// How it stands.
    pub(super) lock: Lock,
    /// Who waits, in order.
    pub(super) waiters: Vec<Waiter>,
    /// What happened to it, newest first.
    pub(super) events: Vec<Event>,
}

fn said(body: &Value, field: &str) -> Option<String> {
    text(body, field).map(clean)
}

fn list<'a>(body: &'a Value, field: &str) -> &'a [Value] {
    body.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Reads `GET /cluster`.
pub(super) fn cluster(body: &Value) -> Cluster {
    let member = |node: &Value| Member {
        id: number(node, "id").unwrap_or_default(),
        role: said(node, "role").unwrap_or_default(),
        http: said(node, "http").unwrap_or_default(),
        zone: said(node, "zone").unwrap_or_default(),
        healthy: node.get("healthy").and_then(Value::as_bool) == Some(true),
        disk: said(node, "disk").unwrap_or_default(),
        applied_index: number(node, "appliedIndex").unwrap_or_default(),
    };
    Cluster {
        id: said(body, "clusterId"),
        node_id: number(body, "nodeId"),
        leader: number(body, "leader"),
        members: list(body, "nodes").iter().take(MEMBERS_MAX).map(member).collect(),
        warnings: list(body, "warnings")
            .iter()
            .filter_map(Value::as_str)
            .take(WARNINGS_MAX)
            .map(clean)
            .collect(),
        revision: number(body, "revision").unwrap_or_default(),
    }
}

/// Reads one lock of `GET /locks` or `/hot`, or the answer of `GET /locks/{resource}`.
pub(super) fn lock(body: &Value) -> Lock {
    Lock {
        resource: text(body, "resource").unwrap_or_default().to_owned(),
        holder: said(body, "holder"),
        token: number(body, "fencingToken"),
        remaining_ms: number(body, "remainingMs"),
        ttl_ms: number(body, "ttlMs"),
        held_ms: number(body, "heldMs"),
        lock_delay_ms: number(body, "lockDelayMs"),
        metadata: said(body, "metadata"),
        waiting: number(body, "queueLength").unwrap_or_default(),
    }
}

/// Reads the locks of a page.
pub(super) fn locks(body: &Value) -> Vec<Lock> {
    list(body, "locks").iter().take(LOCKS_MAX).map(lock).collect()
}

/// Reads `GET /locks/{resource}/queue`.
pub(super) fn waiters(body: &Value) -> Vec<Waiter> {
    let waiter = |waiter: &Value| Waiter {
        position: number(waiter, "position").unwrap_or_default(),
        owner: said(waiter, "owner").unwrap_or_default(),
        waited_ms: number(waiter, "waitedMs").unwrap_or_default(),
        left_ms: number(waiter, "waitRemainingMs").unwrap_or_default(),
        attached: waiter.get("attached").and_then(Value::as_bool) == Some(true),
    };
    list(body, "waiters").iter().take(WAITERS_MAX).map(waiter).collect()
}

/// Reads one event.
pub(super) fn event(body: &Value) -> Event {
    Event {
        revision: number(body, "revision").unwrap_or_default(),
        kind: said(body, "kind").unwrap_or_default(),
        resource: said(body, "resource").unwrap_or_default(),
        owner: said(body, "owner").unwrap_or_default(),
        token: number(body, "fencingToken"),
        reason: said(body, "reason"),
    }
}

/// Reads the last `limit` events of `GET /locks/{resource}/history`, newest first.
pub(super) fn history(body: &Value, limit: usize) -> Vec<Event> {
    list(body, "events").iter().rev().take(limit).map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_owners_say_is_clean_and_the_name_that_is_asked_for_is_not_touched() {
        let lock = lock(&json!({"resource": "a\u{1b}", "holder": "w\u{1b}[2J", "metadata": "x\ny"}));
        assert_eq!((lock.resource.as_str(), lock.holder.as_deref()), ("a\u{1b}", Some("w�[2J")));
        assert_eq!(lock.metadata.as_deref(), Some("x�y"));
    }

    #[test]
    fn an_answer_of_another_shape_is_an_empty_one() {
        for body in [json!(null), json!([1]), json!({"nodes": 7, "locks": {"a": 1}, "leader": "x"})] {
            assert_eq!(cluster(&body), Cluster::default());
            assert!(locks(&body).is_empty() && waiters(&body).is_empty() && history(&body, 9).is_empty());
        }
    }
}
