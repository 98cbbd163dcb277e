//! What a bench found.
//!
//! Owns: the figures, for programs as JSON and for people as a table of the same. Never: measures.

mod table;

use serde::Serialize;
use std::collections::BTreeMap;

/// What a bench found. Its JSON has the same names in camel case; a later version may add to them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// `acquire-release`, `mix`, `hand-off` or `reads`.
    pub workload: &'static str,
    /// `closed` or `open`.
    pub pace: &'static str,
    /// Operations a second that were to start; of an open loop only.
    pub rate: Option<u32>,
    /// Operations that could be under way at once.
    pub clients: u32,
    /// Client objects that they shared.
    pub connections: u32,
    /// Locks that were held all the time; of the mix only.
    pub held: Option<u32>,
    /// How long leases lasted without renewal.
    pub ttl_ms: u64,
    /// The id of the cluster.
    pub cluster: Option<String>,
    /// The addresses that were connected.
    pub endpoints: Vec<String>,
    /// What every name began with.
    pub prefix: String,
    /// Seconds that weren't counted.
    pub warm_up_seconds: f64,
    /// Seconds that were.
    pub seconds: f64,
    /// Why it ended.
    pub ended_by: EndedBy,
    /// Requests that did what they were sent for.
    pub operations: u64,
    /// Of these, for each second counted.
    pub per_second: f64,
    /// Operations that didn't, by code. They are in no latency.
    pub errors: BTreeMap<String, u64>,
    /// Operations that began more than 1 ms after their time; of an open loop only. Their latency says by how much.
    pub late: Option<u64>,
    /// Operations that were due and never began, for want of a free client; of an open loop only. They are in no latency.
    pub never_begun: Option<u64>,
    /// Locks that couldn't be given back; they run out.
    pub left_behind: u64,
    /// Each kind of operation.
    pub kinds: Vec<KindReport>,
}

/// Why a bench ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum EndedBy {
    /// Its time was over.
    Duration,
    /// Somebody stopped it before.
    Stop,
}

/// What was found of one kind of operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KindReport {
    /// `acquire`, `renew`, `release`, `status`, or `hand-off`: from a release to the next grant.
    pub kind: &'static str,
    /// Those that went well.
    pub operations: u64,
    /// Of these, for each second counted.
    pub per_second: f64,
    /// Those that didn't, by code.
    pub errors: BTreeMap<String, u64>,
    /// Of those that went well; there is none without one.
    pub latency_us: Option<Latency>,
    /// Whether it is a request of its own, and so counts among the operations of the whole.
    #[serde(skip)]
    pub(crate) is_request: bool,
}

/// Latencies in microseconds, each right to one in a thousand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// The shortest.
    pub min: u64,
    /// Half are at most this.
    pub p50: u64,
    /// 90 % are.
    pub p90: u64,
    /// 99 % are.
    pub p99: u64,
    /// 99.9 % are.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

impl KindReport {
    pub(crate) fn new(
        (kind, is_request): (&'static str, bool),
        operations: u64,
        seconds: f64,
        errors: BTreeMap<String, u64>,
        latency_us: Option<Latency>,
    ) -> Self {
        Self { kind, operations, per_second: per_second(operations, seconds), errors, latency_us, is_request }
    }
}

impl Report {
    /// Sets what the whole comes to from its kinds.
    pub(crate) fn of_kinds(self, kinds: Vec<KindReport>) -> Self {
        let requests = || kinds.iter().filter(|kind| kind.is_request);
        let operations = requests().map(|kind| kind.operations).sum();
        let mut errors = BTreeMap::new();
        for (code, count) in requests().flat_map(|kind| &kind.errors) {
            *errors.entry(code.clone()).or_default() += count;
        }
        Self { operations, per_second: per_second(operations, self.seconds), errors, kinds, ..self }
    }

    /// The same for people: a title, a table with a row for each kind, and what else is worth knowing.
    pub fn table(&self) -> String {
        table::table(self)
    }
}

/// To a tenth; nothing when nothing was counted.
fn per_second(operations: u64, seconds: f64) -> f64 {
    if seconds <= 0.0 {
        return 0.0;
    }
    // Fewer than 2^53 operations: exact.
    (operations as f64 / seconds * 10.0).round() / 10.0
}
