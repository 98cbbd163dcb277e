//! `docs/metrics.md`.

use super::row::{Kind, Label, Row, Section};
use super::tables;
use std::fmt::Write as _;

const HEAD: &str = "\
# Metrics

`GET /metrics` on any node gives that node's numbers in Prometheus' text format, version 0.0.4, without asking anybody: also
without a quorum, and before the node belongs to a cluster. There is nothing to switch on.

```yaml
scrape_configs:
  - job_name: kunci
    static_configs:
      - targets: [node-1:7400, node-2:7400, node-3:7400]
```

No number is labelled by resource, namespace, owner, client or address, so there are as many series with a hundred thousand
locks as with none. Which locks are waited for most says `GET /hot`, a list that is as long as it is asked to be
([http.md](http.md)).

What a number is about says how to add it up:

- **This node's clients and disk** (`kunci_request_duration_seconds`, `kunci_connections`, `kunci_fsync_duration_seconds`, …): each node
  counts its own, so `sum` over the nodes. A request that a node passes on to the leader counts at the node that was asked.
- **The log** (`kunci_events_total`, `kunci_renewals_total`, `kunci_lease_wait_seconds`, `kunci_leases`, …): every node applies every
  entry and counts it, so `max` over the nodes. What a node has in its log when it starts, and what it skips by a
  snapshot, doesn't count.
- **The leader's work** (`kunci_commit_duration_seconds`, `kunci_batch_commands`, …): only who leads counts, so `sum`.

Counters begin at 0 with the process. Series are there from the start, except for outcomes of requests that are rare: those
come with the first one.

This page is made from the code: `KUNCI_BLESS=1 cargo test -p kunci-server --test metrics` writes it, and the test fails when
it differs.
";

/// The page, as it is committed.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for Section { title, rows, below } in tables::ALL {
        // Writing to a text can't fail.
        let _ =
            write!(page, "\n## {title}\n\n| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n");
        for Row { name, kind, labels, meaning, .. } in rows {
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            let labels: Vec<String> = labels.iter().map(in_words).collect();
            let _ = writeln!(page, "| `{name}` | {kind} | {} | {meaning} |", labels.join("; "));
        }
        page.push_str(below);
    }
    page
}

fn in_words(Label { name, values }: &Label) -> String {
    if values.is_empty() { format!("`{name}`") } else { format!("`{name}`: {values}") }
}
