//! What `deploy/` has for Prometheus and Grafana fits the metrics that there are, and the pages that it names.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn promtool(words: &[&str]) {
    let output =
        Command::new("promtool").args(words).current_dir(root().join("deploy/prometheus")).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "promtool {words:?}:\n{}", String::from_utf8_lossy(&said));
}

/// The names of metrics in a text: `kunci_…`, and those of the process.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words
        .filter(|word| word.starts_with("kunci_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect()
}

/// The names that docs/metrics.md has, each with its type.
fn metrics_there_are() -> Vec<(String, String)> {
    let page = read("docs/metrics.md");
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|');
        Some((cells.next()?.trim().trim_matches('`').to_owned(), cells.next()?.trim().to_owned()))
    });
    rows.collect()
}

/// Issue 8: no leader, leader flapping, renewals failing, queue growing, fsync slow, disk filling, apply lag, fencing
/// rejections, each at its time and not before.
#[test]
fn each_alert_comes_when_it_should() {
    promtool(&["check", "config", "prometheus.yml"]);
    promtool(&["test", "rules", "kunci-rules-test.yml"]);
}

#[test]
fn rules_and_panels_name_only_metrics_that_there_are() {
    let there = metrics_there_are();
    assert!(there.len() > 40, "only {} metrics are in docs/metrics.md", there.len());
    let is_there = |name: &str| {
        let parts = ["_bucket", "_count", "_sum"].into_iter().filter_map(|part| name.strip_suffix(part));
        let mut histograms = parts.map(|base| (base, "histogram"));
        there.iter().any(|(metric, kind)| metric == name && kind != "histogram")
            || histograms
                .any(|(base, kind)| there.iter().any(|(metric, found)| metric == base && found == kind))
    };
    for path in [
        "deploy/prometheus/kunci-rules.yml",
        "deploy/prometheus/kunci-rules-test.yml",
        "deploy/grafana/kunci.json",
    ] {
        let named = metrics_in(&read(path));
        assert!(named.len() > 10, "{path} names only {named:?}");
        let unknown: Vec<_> = named.iter().filter(|name| !is_there(name)).collect();
        assert!(unknown.is_empty(), "{path} names metrics that aren't in docs/metrics.md: {unknown:?}");
    }
}

#[test]
fn each_alert_has_a_test_and_a_runbook() {
    let (rules, tests, page) = (
        read("deploy/prometheus/kunci-rules.yml"),
        read("deploy/prometheus/kunci-rules-test.yml"),
        read("docs/operations.md"),
    );
    let alerts: Vec<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let runbooks: Vec<_> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("runbook: docs/operations.md#")).collect();
    assert!(alerts.len() >= 10 && alerts.len() == runbooks.len(), "{alerts:?}\n{runbooks:?}");
    for (alert, runbook) in alerts.iter().zip(runbooks) {
        assert!(tests.contains(&format!("alertname: {alert}\n")), "no test sees {alert} begin");
        let has_heading = page
            .lines()
            .any(|line| line.strip_prefix("### ").is_some_and(|head| head.to_lowercase() == runbook));
        assert!(
            has_heading && page.contains(alert),
            "docs/operations.md has no runbook {runbook} for {alert}"
        );
    }
}

#[test]
fn the_dashboard_is_one_that_can_be_imported() {
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/kunci.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let targets = panel["targets"].as_array().unwrap();
        let is_whole =
            |target: &Value| target["expr"].as_str().is_some_and(|expression| expression.contains("$job"));
        assert!(!targets.is_empty() && targets.iter().all(is_whole), "{}", panel["title"]);
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
    }
}
