//! The page of metrics, and what one node shows. A cluster's numbers under load: `crates/cli/tests/cluster/metrics.rs`.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]

mod http_support;

use http_support::{Node, until};
use kunci_server::metrics::page;
use serde_json::json;
use std::collections::BTreeSet;

/// `KUNCI_BLESS=1` writes the page anew.
#[test]
fn the_committed_page_of_metrics_is_what_the_code_has() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    if std::env::var_os("KUNCI_BLESS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == page(), "docs/metrics.md differs from the code: write it with KUNCI_BLESS=1");
}

/// Names and labels without their values, as a set.
fn series(text: &str) -> BTreeSet<String> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect()
}

/// Case C138: names of locks, clients and requests make no series, whatever is in them, and the text stays as long.
#[tokio::test]
async fn there_are_as_many_series_with_many_names_as_with_one() {
    let node = Node::start().await;
    let mut connection = node.connect().await;
    let mut take = async |name: &str, client: &str| {
        let path = format!("/locks/{name}/acquire");
        let reply = connection.call("POST", &path, json!({ "clientId": client, "requestId": client })).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    };
    take("first", "first").await;
    let before = node.get("/metrics").await;
    for number in 0..300 {
        take(&format!("n{number}-%22%5C%7B%7D%3D%C3%A9"), &format!("c{number}\"\\{{}}")).await;
    }
    let after = node.get("/metrics").await;

    assert!(after.text.contains("kunci_leases 301\n"), "{}", after.text);
    assert_eq!(series(&before.text), series(&after.text));
    assert!(after.text.len() < before.text.len() + 2_000, "{} {}", before.text.len(), after.text.len());
    assert!(!after.text.contains("n299") && !after.text.contains("c299"));
    node.stop().await;
}

/// Every number of the page is shown by a member, with the labels that the page says.
#[tokio::test]
async fn a_node_shows_every_metric_of_the_page_with_its_labels() {
    let node = Node::start().await;
    let text = node.get("/metrics").await.text;
    for row in page().lines().filter(|row| row.starts_with("| `kunci_") || row.starts_with("| `process_")) {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let [name, kind, labels] = [(); 3].map(|()| cells.next().unwrap());
        let name = name.trim_matches('`');
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name} isn't shown as a {kind}");
        let labels = labels.split("; ").filter_map(|label| label.split('`').nth(1));
        let labels: BTreeSet<&str> = labels.collect();
        let sample = if kind == "histogram" { format!("{name}_count") } else { name.to_owned() };
        let shown = text
            .lines()
            .find_map(|line| line.strip_prefix(&sample).filter(|rest| rest.starts_with([' ', '{'])));
        let shown = shown.unwrap_or_else(|| panic!("{name} has no sample"));
        let shown =
            shown.split(['{', ',', '}']).filter_map(|pair| pair.split_once("=\"")).map(|(label, _)| label);
        assert_eq!(shown.collect::<BTreeSet<&str>>(), labels, "{name}");
    }
    node.stop().await;
}

/// What a node has in its log when it starts was counted by the process before.
#[tokio::test]
async fn a_restart_counts_nothing_twice() {
    let node = Node::start().await;
    for name in ["a", "b", "c"] {
        assert_eq!(node.acquire(name, "w").await.status, 200);
    }
    let granted = "kunci_events_total{kind=\"granted\"}";
    assert!(node.get("/metrics").await.text.contains(&format!("{granted} 3\n")));

    let node = node.restart().await;
    until("all is applied", async || node.get("/metrics").await.text.contains("kunci_leases 3\n")).await;
    assert!(node.get("/metrics").await.text.contains(&format!("{granted} 0\n")));
    assert_eq!(node.acquire("d", "w").await.status, 200);
    assert!(node.get("/metrics").await.text.contains(&format!("{granted} 1\n")));
    node.stop().await;
}
