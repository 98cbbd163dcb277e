//! A cluster's numbers, put together from its nodes' as docs/metrics.md says.

use crate::verbs::top::numbers::{Numbers, add, quantile_ms};

/// How one kind of request goes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::verbs::top) struct Operation {
    /// How many a second.
    pub(in crate::verbs::top) per_second: Option<f64>,
    /// Half of them took at most this, in ms.
    pub(in crate::verbs::top) p50_ms: Option<f64>,
    /// And 99 of 100 at most this.
    pub(in crate::verbs::top) p99_ms: Option<f64>,
}

/// How a cluster does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::verbs::top) struct Totals {
    /// Acquires, with their waits.
    pub(in crate::verbs::top) acquire: Operation,
    /// Calls that renew.
    pub(in crate::verbs::top) renew: Operation,
    /// Releases.
    pub(in crate::verbs::top) release: Operation,
    /// Entries, from being proposed to being on a quorum's disks and applied.
    pub(in crate::verbs::top) commit: Operation,
    /// Requests a second that ended in `limited`, `unavailable` or `unknown`.
    pub(in crate::verbs::top) failing: Option<f64>,
    /// Renewals a second that were refused because the lease was over.
    pub(in crate::verbs::top) lost: Option<f64>,
    /// Leases a second that ended by time.
    pub(in crate::verbs::top) expired: Option<f64>,
    /// Stale tokens a second that protected resources reported.
    pub(in crate::verbs::top) fencing: Option<f64>,
    /// Current leases.
    pub(in crate::verbs::top) held: Option<f64>,
    /// Requests that wait.
    pub(in crate::verbs::top) waiting: Option<f64>,
    /// Resources that somebody waits for.
    pub(in crate::verbs::top) contended: Option<f64>,
    /// Commands that wait to be put into an entry.
    pub(in crate::verbs::top) queue: Option<f64>,
    /// The term of the consensus.
    pub(in crate::verbs::top) term: Option<f64>,
    /// How often another node than before led.
    pub(in crate::verbs::top) leader_changes: Option<f64>,
}

const REQUESTS: &str = "kunci_request_duration_seconds";

impl Totals {
    /// From the nodes that answer.
    pub(super) fn of(nodes: &[&Numbers]) -> Self {
        let gauges = |name: &'static str| nodes.iter().filter_map(move |node| node.gauge(name, &[]));
        // What every node counts alike, and what each counts for itself.
        let largest = |name| gauges(name).reduce(f64::max);
        let rate = |name, label, value| {
            largest_of(nodes.iter().map(|node| node.per_second(name, &[(label, value)])))
        };
        let failing = ["limited", "unavailable", "unknown"].into_iter().flat_map(|outcome| {
            nodes
                .iter()
                .map(move |node| node.per_second(&format!("{REQUESTS}_count"), &[("outcome", outcome)]))
        });
        Self {
            acquire: operation(nodes, REQUESTS, &["acquire"]),
            renew: operation(nodes, REQUESTS, &["renew", "renew_many"]),
            release: operation(nodes, REQUESTS, &["release"]),
            commit: operation(nodes, "kunci_commit_duration_seconds", &[]),
            failing: sum_of(failing),
            lost: rate("kunci_renewals_total", "outcome", "lost"),
            expired: rate("kunci_events_total", "kind", "expired"),
            fencing: sum_of(nodes.iter().map(|node| node.per_second("kunci_fencing_rejections_total", &[]))),
            held: largest("kunci_leases"),
            waiting: largest("kunci_waiters"),
            contended: largest("kunci_contended_resources"),
            queue: gauges("kunci_batcher_queue").reduce(|sum, queue| sum + queue),
            term: largest("kunci_term"),
            leader_changes: largest("kunci_leader_changes_total"),
        }
    }
}

fn sum_of(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(|sum, value| sum + value)
}

fn largest_of(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(f64::max)
}

/// The requests of these kinds, of all nodes; a histogram without kinds as a whole.
fn operation(nodes: &[&Numbers], name: &str, kinds: &[&str]) -> Operation {
    let mut buckets = Vec::new();
    let mut rates = Vec::new();
    for node in nodes {
        let mut count = |labels: &[(&str, &str)]| {
            add(&mut buckets, node.grown(name, labels));
            rates.push(node.per_second(&format!("{name}_count"), labels));
        };
        match kinds {
            [] => count(&[]),
            kinds => kinds.iter().for_each(|kind| count(&[("op", kind)])),
        }
    }
    Operation {
        per_second: sum_of(rates.into_iter()),
        p50_ms: quantile_ms(0.5, &buckets),
        p99_ms: quantile_ms(0.99, &buckets),
    }
}
