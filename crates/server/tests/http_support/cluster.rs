//! Several nodes in one process, each with doors of its own.

use super::{Node, Opening, SOON, until};
use kunci_replica::{Lead, Replica, ReplicaConfig};
use kunci_server::http::HttpLimits;
use kunci_server::service::Service;
use serde_json::{Value, json};
use tokio::time::timeout;

/// A cluster of three voters. The first leads.
pub(crate) async fn three() -> [Node; 3] {
    three_with(HttpLimits::default()).await
}

pub(crate) async fn three_with(limits: HttpLimits) -> [Node; 3] {
    let first = Node::start_with(limits.clone()).await;
    let second = join(&first, limits.clone()).await;
    let third = join(&first, limits).await;
    let nodes = [first, second, third];
    for node in &nodes {
        until("every node knows who leads", async || knows_leader(node)).await;
    }
    nodes
}

pub(crate) fn knows_leader(node: &Node) -> bool {
    !matches!(node.replica.lead(), Lead::Nobody { .. })
}

/// A new node, taken into the cluster of `member`, once it is a voter.
pub(crate) async fn join(member: &Node, limits: HttpLimits) -> Node {
    let node = enter(member, limits, "/cluster/add", json!({})).await;
    let id = node.replica.node_id();
    until("the new node is a voter", async || {
        let cluster = member.get("/cluster").await;
        let nodes = cluster.body["nodes"].as_array().unwrap();
        nodes.iter().any(|node| node["id"] == id && node["role"] == "follower")
    })
    .await;
    node
}

/// A new node that will take the place of `old`; `member` is asked for it.
pub(crate) async fn replace(member: &Node, old: &Node) -> Node {
    let body = json!({ "nodeId": old.replica.node_id() });
    enter(member, HttpLimits::default(), "/cluster/replace", body).await
}

async fn enter(member: &Node, limits: HttpLimits, path: &str, mut body: Value) -> Node {
    let mut opening = Opening::new(tempfile::tempdir().unwrap(), limits).await;
    body["peer"] = json!(opening.me.peer);
    let joined = async {
        let invited = opening.peers.invitation(&opening.me).await;
        let config = ReplicaConfig::new(opening.data.path(), opening.me.clone());
        let replica = Replica::join(config, opening.peers, invited).await.unwrap();
        opening.http.enter(Service::new(replica.clone()));
        let Opening { address, http, stop, door, data, wire, me, .. } = opening;
        Node { address, replica, http, stop, door, data, wire, peer: me.peer }
    };
    let (taken, node) = timeout(SOON, async { tokio::join!(member.post(path, body), joined) }).await.unwrap();
    assert_eq!(taken.status, 200, "{}", taken.text);
    assert_eq!(taken.body["nodeId"], node.replica.node_id());
    node
}

/// Which of them leads, once exactly one does.
pub(crate) async fn leader(nodes: &[&Node]) -> usize {
    let mut leads = None;
    until("one of them leads", async || {
        leads = nodes.iter().position(|node| node.replica.lead() == Lead::Here);
        leads.is_some()
    })
    .await;
    leads.unwrap()
}
