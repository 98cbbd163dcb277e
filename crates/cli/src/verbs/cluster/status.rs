//! `kunci cluster status`.

use super::{cluster, nodes};
use crate::answer::{number, shown, text};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{Output, table};
use serde_json::Value;

/// Shows the members and who leads.
pub(super) async fn run(client: &Client, output: &Output) -> Result<Exit, Failure> {
    let answer = cluster(client).await?;
    output.answer(&answer.body, human)?;
    Ok(Exit::Done)
}

/// A line about the cluster, a table of its nodes, and below it what to look at.
pub(crate) fn human(body: &Value) -> String {
    let cell = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let row = |node: &Value| {
        vec![
            cell(shown(node, "id")),
            cell(shown(node, "role")),
            cell(shown(node, "zone")),
            cell(shown(node, "priority")),
            match node.get("healthy").and_then(Value::as_bool) {
                Some(true) => "yes".to_owned(),
                _ => "no".to_owned(),
            },
            cell(shown(node, "appliedIndex")),
            cell(shown(node, "http")),
            cell(shown(node, "native")),
            cell(shown(node, "peer")),
        ]
    };
    let heads = ["ID", "ROLE", "ZONE", "PRIORITY", "HEALTHY", "APPLIED", "HTTP", "NATIVE", "PEER"];
    let rows: Vec<_> = nodes(body).iter().map(row).collect();
    let warnings = body.get("warnings").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let warnings = warnings.iter().filter_map(Value::as_str).map(|warning| format!("\nwarning: {warning}"));
    format!("{}\n{}{}", title(body), table(&heads, &rows), warnings.collect::<String>())
}

fn title(body: &Value) -> String {
    let Some(cluster) = text(body, "clusterId") else {
        return "this node belongs to no cluster yet: form one with `kunci cluster init`, or let it join one with \
                `kunci cluster join MEMBER`"
            .to_owned();
    };
    let leader = match number(body, "leader") {
        Some(leader) => format!("node {leader} leads"),
        None => "nobody leads, as far as this node knows".to_owned(),
    };
    let told_by = number(body, "nodeId").map(|id| format!(" (told by node {id})")).unwrap_or_default();
    format!("cluster {cluster}: {leader}{told_by}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_person_sees_who_leads_each_node_and_every_warning() {
        let node = |id: u64, role: &str, healthy: bool| {
            json!({
                "id": id, "role": role, "zone": "a", "priority": 0, "healthy": healthy, "appliedIndex": 7,
                "http": format!("h{id}:1"), "native": "n:1", "peer": "p:1",
            })
        };
        let body = json!({
            "clusterId": "c1", "leader": 1, "nodeId": 2, "warnings": ["node 2 is down"],
            "nodes": [node(1, "leader", true), node(2, "follower", false)],
        });
        assert_eq!(
            human(&body),
            "cluster c1: node 1 leads (told by node 2)\n\
             ID  ROLE      ZONE  PRIORITY  HEALTHY  APPLIED  HTTP  NATIVE  PEER\n\
             1   leader    a     0         yes      7        h1:1  n:1     p:1\n\
             2   follower  a     0         no       7        h2:1  n:1     p:1\n\
             warning: node 2 is down"
        );
    }

    #[test]
    fn a_node_of_no_cluster_says_how_it_gets_one() {
        let body = json!({ "clusterId": null, "leader": null, "nodes": [], "warnings": [] });
        assert!(human(&body).contains("`kunci cluster init`"));
    }
}
