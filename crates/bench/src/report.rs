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
    /// Client objects that they shared; over HTTP there is a connection for each client.
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
    /// Locks that were held at the end and couldn't be given back; they run out.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a bench found in two kinds of which one failed sometimes, and in one that is no request.
    pub(super) fn report() -> Report {
        let latency = Latency { min: 412, p50: 1_003, p90: 2_500, p99: 9_000, p999: 12_345, max: 120_000 };
        let errors = BTreeMap::from([("expired".to_owned(), 2), ("no_leader".to_owned(), 1)]);
        let kinds = vec![
            KindReport::new(("acquire", true), 1_200, 10.0, BTreeMap::new(), Some(latency)),
            KindReport::new(("release", true), 0, 10.0, errors, None),
            KindReport::new(("hand-off", false), 7, 10.0, BTreeMap::new(), Some(latency)),
        ];
        let report = Report {
            workload: "mix",
            pace: "open",
            rate: Some(400),
            clients: 256,
            connections: 16,
            held: Some(1_000),
            ttl_ms: 30_000,
            cluster: Some("c1".to_owned()),
            endpoints: vec!["127.0.0.1:7401".to_owned(), "[::1]:7401".to_owned()],
            prefix: "bench/01234567/".to_owned(),
            warm_up_seconds: 2.0,
            seconds: 10.0,
            ended_by: EndedBy::Stop,
            late: Some(5),
            never_begun: Some(0),
            left_behind: 3,
            operations: 0,
            per_second: 0.0,
            errors: BTreeMap::new(),
            kinds: Vec::new(),
        };
        report.of_kinds(kinds)
    }

    #[test]
    fn the_whole_is_the_sum_of_its_requests() {
        let report = report();
        assert_eq!((report.operations, report.per_second), (1_200, 120.0));
        assert_eq!(report.errors.values().sum::<u64>(), 3);
    }

    #[test]
    fn programs_find_the_figures_under_these_names() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["endedBy"], "stop");
        assert_eq!(json["perSecond"], 120.0);
        assert_eq!(json["neverBegun"], 0);
        assert_eq!(
            json["kinds"][0],
            serde_json::json!({
                "kind": "acquire", "operations": 1_200, "perSecond": 120.0, "errors": {},
                "latencyUs": { "min": 412, "p50": 1_003, "p90": 2_500, "p99": 9_000, "p999": 12_345, "max": 120_000 },
            })
        );
        assert_eq!(json["kinds"][1]["latencyUs"], serde_json::Value::Null);
        assert_eq!(json["kinds"][1]["errors"], serde_json::json!({ "expired": 2, "no_leader": 1 }));
    }

    #[test]
    fn where_nothing_was_counted_nothing_is_divided() {
        assert_eq!(per_second(0, 0.0), 0.0);
    }
}
