//! From processes to a cluster.
//!
//! Owns: forming it the first time, and taking in nodes whose data folder is empty. Never: touches a data folder.

use super::layout::{Layout, Node};
use crate::answer::{number, text};
use crate::args::Trying;
use crate::client::{Call, Client};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::verbs::cluster::{Joined, change, cluster, nodes as members, until_voter};
use kunci_client::{BootClock, Clock as _};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// How long any single step may take; each takes far less on an idle machine.
const STEP_WITHIN: Duration = Duration::from_secs(60);
/// From one look to the next.
const PAUSE: Duration = Duration::from_millis(50);

/// Waits for the nodes, forms a cluster of those that have none, and returns what `GET /cluster` says in the end.
pub(super) async fn form(layout: &Layout, output: &Output) -> Result<Value, Failure> {
    let mut all = Vec::new();
    for node in layout.nodes() {
        let client = Client::new(&format!("http://{}", node.http()))?;
        let seen = up(node, &client).await?;
        all.push(Seen { node, client, cluster_id: text(&seen, "clusterId").map(str::to_owned) });
    }
    let Some(first) = all.first() else { return Ok(Value::Null) };
    let member = match all.iter().find(|seen| seen.cluster_id.is_some()) {
        Some(member) => member,
        None => {
            output.say(&format!("forming a cluster of {}", all.len()));
            change(&first.client, "init", json!({}), &trying(), output).await?;
            first
        }
    };
    let cluster_id = cluster(&member.client).await?.text("clusterId").map(str::to_owned);
    for seen in &all {
        match &seen.cluster_id {
            None if std::ptr::eq(seen, member) => {}
            None => take_in(&member.client, seen.node, output).await?,
            own if *own == cluster_id => {}
            _ => return Err(of_another_cluster(seen.node)),
        }
    }
    for seen in &all {
        serving(seen).await?;
    }
    Ok(cluster(&member.client).await?.body)
}

/// A node, and which cluster it was in when it was first asked.
struct Seen<'a> {
    node: &'a Node,
    client: Client,
    cluster_id: Option<String>,
}

fn trying() -> Trying {
    Trying { patience: STEP_WITHIN }
}

fn of_another_cluster(node: &Node) -> Failure {
    Failure::new(
        Exit::Refused,
        format!(
            "node-{} has data of another cluster than the others; move {} away to let it join this one anew",
            node.index,
            node.data().display()
        ),
    )
}

/// Waits until a node answers at all.
async fn up(node: &Node, client: &Client) -> Result<Value, Failure> {
    let give_up_at = BootClock.now().plus(STEP_WITHIN);
    loop {
        match client.call(&Call::get("/cluster".to_owned())).await {
            Ok(answer) if answer.is_success() => return Ok(answer.body),
            _ if BootClock.now() >= give_up_at => return Err(too_slow(node, "doesn't answer")),
            _ => sleep(PAUSE).await,
        }
    }
}

/// Waits until a node serves requests, and knows of every other one that it is well.
async fn serving(seen: &Seen<'_>) -> Result<(), Failure> {
    let give_up_at = BootClock.now().plus(STEP_WITHIN);
    loop {
        let is_ready =
            seen.client.call(&Call::get("/readyz".to_owned())).await.is_ok_and(|answer| answer.is_success());
        if is_ready && cluster(&seen.client).await.is_ok_and(|answer| is_well(&answer.body)) {
            return Ok(());
        }
        if BootClock.now() >= give_up_at {
            return Err(too_slow(seen.node, "doesn't serve, or misses others,"));
        }
        sleep(PAUSE).await;
    }
}

fn is_well(cluster: &Value) -> bool {
    let is_healthy = |member: &Value| member.get("healthy").and_then(Value::as_bool) == Some(true);
    number(cluster, "leader").is_some() && members(cluster).iter().all(is_healthy)
}

fn too_slow(node: &Node, what: &str) -> Failure {
    Failure::new(
        Exit::Refused,
        format!("node-{} {what} after {STEP_WITHIN:?}; its log: {}", node.index, node.log().display()),
    )
}

/// Makes a node with an empty data folder a voter. One that was a member and has lost its data takes its own place,
/// under a new id.
async fn take_in(member: &Client, node: &Node, output: &Output) -> Result<(), Failure> {
    let peer = node.peer().to_string();
    let give_up_at = BootClock.now().plus(STEP_WITHIN);
    let node_id = loop {
        let seen = cluster(member).await?;
        let before = members(&seen.body).iter().find(|known| text(known, "peer") == Some(&peer));
        let (verb, body) = match before.and_then(|known| number(known, "id")) {
            Some(old) => ("replace", json!({ "nodeId": old, "peer": peer })),
            None => ("add", json!({ "peer": peer })),
        };
        match change(member, verb, body, &trying(), output).await {
            Ok(answer) => break answer.number("nodeId").unwrap_or_default(),
            // The change before may just not be over.
            Err(failure) if is_passing(&failure) && BootClock.now() < give_up_at => sleep(PAUSE).await,
            Err(failure) => return Err(failure),
        }
    };
    until_voter(member, Joined { node_id, within: STEP_WITHIN }, output).await
}

fn is_passing(failure: &Failure) -> bool {
    matches!(text(&failure.body, "code"), Some("change_in_progress" | "not_ready"))
}
