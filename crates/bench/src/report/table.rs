//! A report for people.
//!
//! Owns: columns, units and words. Never: a figure that isn't in the JSON.

use super::{EndedBy, KindReport, Report};
use std::collections::BTreeMap;

const HEADS: [&str; 10] =
    ["KIND", "OPERATIONS", "PER S", "ERRORS", "MIN", "P50", "P90", "P99", "P99.9", "MAX"];

pub(super) fn table(report: &Report) -> String {
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(report.kinds.iter().map(row));
    let mut parts = vec![title(report), String::new(), columns(&rows), String::new()];
    parts.push(format!(
        "{} operations, {:.1} per second; latencies in ms",
        report.operations, report.per_second
    ));
    parts.extend(report.kinds.iter().filter_map(errors));
    parts.extend(notes(report));
    parts.join("\n")
}

fn title(report: &Report) -> String {
    let pace = match report.rate {
        Some(rate) => format!("open loop at {rate} per second"),
        None => "closed loop".to_owned(),
    };
    let held = report.held.map(|held| format!(", {held} locks held")).unwrap_or_default();
    let stopped = match report.ended_by {
        EndedBy::Duration => "",
        EndedBy::Stop => ", stopped before its time",
    };
    let cluster = report.cluster.as_deref().unwrap_or("unknown");
    format!(
        "{}, {pace}: {} clients on {} connections{held}, {:.1} s after {:.1} s of warm-up{stopped}\n\
         cluster {cluster} at {}",
        report.workload,
        report.clients,
        report.connections,
        report.seconds,
        report.warm_up_seconds,
        report.endpoints.join(", ")
    )
}

fn row(kind: &KindReport) -> [String; 10] {
    let ms = |micros: u64| format!("{}.{:03}", micros / 1_000, micros % 1_000);
    let [min, p50, p90, p99, p999, max] = match kind.latency_us {
        Some(l) => [l.min, l.p50, l.p90, l.p99, l.p999, l.max].map(ms),
        None => [const { String::new() }; 6].map(|_| "-".to_owned()),
    };
    let errors: u64 = kind.errors.values().sum();
    let per_second = format!("{:.1}", kind.per_second);
    let [name, operations, errors] = [kind.kind.to_owned(), kind.operations.to_string(), errors.to_string()];
    [name, operations, per_second, errors, min, p50, p90, p99, p999, max]
}

/// The first column begins at the left, numbers end at the right.
fn columns(rows: &[[String; 10]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn errors(kind: &KindReport) -> Option<String> {
    let counts = |errors: &BTreeMap<String, u64>| {
        errors.iter().map(|(code, count)| format!("{count} {code}")).collect::<Vec<_>>().join(", ")
    };
    (!kind.errors.is_empty()).then(|| format!("{} errors: {}", kind.kind, counts(&kind.errors)))
}

fn notes(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(late) = report.late.filter(|late| *late > 0) {
        notes.push(format!("{late} operations began more than 1 ms late, which is in their latency"));
    }
    if let Some(never) = report.never_begun.filter(|never| *never > 0) {
        notes.push(format!(
            "{never} operations were due and never began: the rate is beyond what {} clients get done",
            report.clients
        ));
    }
    if report.left_behind > 0 {
        notes.push(format!(
            "{} locks couldn't be given back; they run out within {} s",
            report.left_behind,
            report.ttl_ms.div_ceil(1_000)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;

    #[test]
    fn a_person_sees_what_was_done_how_fast_and_what_went_wrong() {
        assert_eq!(
            table(&report()),
            "mix, open loop at 400 per second: 256 clients on 16 connections, 1000 locks held, 10.0 s after 2.0 s of \
             warm-up, stopped before its time\n\
             cluster c1 at 127.0.0.1:7401, [::1]:7401\n\
             \n\
             KIND      OPERATIONS  PER S  ERRORS    MIN    P50    P90    P99   P99.9      MAX\n\
             acquire         1200  120.0       0  0.412  1.003  2.500  9.000  12.345  120.000\n\
             release            0    0.0       3      -      -      -      -       -        -\n\
             hand-off           7    0.7       0  0.412  1.003  2.500  9.000  12.345  120.000\n\
             \n\
             1200 operations, 120.0 per second; latencies in ms\n\
             release errors: 2 expired, 1 no_leader\n\
             5 operations began more than 1 ms late, which is in their latency\n\
             3 locks couldn't be given back; they run out within 30 s"
        );
    }

    #[test]
    fn a_run_that_went_well_has_nothing_below_its_table() {
        let fine = Report { late: Some(0), left_behind: 0, kinds: Vec::new(), ..report() };
        assert!(table(&fine).ends_with("latencies in ms"));
    }
}
