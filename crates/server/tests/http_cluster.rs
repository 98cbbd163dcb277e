//! A node of no cluster, forming one, and changing who is in it: the calls under `/cluster`.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]
#![expect(clippy::unwrap_used, reason = "a test helper fails by panicking")]

mod http_support;

use http_support::cluster::three;
use http_support::{Node, Opening, Reply, SOON, connect, until};
use kunci_replica::{Replica, ReplicaConfig};
use kunci_server::http::{HttpLimits, openapi_json};
use kunci_server::service::Service;
use serde_json::{Value, json};
use tokio::time::timeout;

async fn opening() -> Opening {
    Opening::new(tempfile::tempdir().unwrap(), HttpLimits::default()).await
}

/// Checks that a body has the fields that the OpenAPI document says it has, and no others.
fn check_body(reply: &Reply, method: &str, path: &str) {
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    let call = &document["paths"][path][method];
    assert!(call.is_object(), "{method} {path} isn't in the document");
    let status = reply.status.to_string();
    let responses = &call["responses"];
    let response = responses.get(&status).unwrap_or(&responses["default"]);
    let content = response["content"].as_object().unwrap();
    assert_eq!(content.keys().collect::<Vec<_>>(), [&reply.headers["content-type"]]);
    let schema = &content[&reply.headers["content-type"]]["schema"];
    check_value(&document, schema, &reply.body, path);
}

fn check_value(document: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/components/schemas/")) {
        return check_value(document, &document["components"]["schemas"][name], value, name);
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(types.contains(&found), "{at}: found {found}, expected {types:?}");
    for item in value.as_array().into_iter().flatten() {
        check_value(document, &schema["items"], item, at);
    }
    let Some(fields) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(fields.contains_key(name.as_str().unwrap()), "{at} has no {name}: {value}");
    }
    for (name, value) in fields {
        let property = &schema["properties"][name];
        assert!(property.is_object(), "{at}.{name} isn't in the document");
        check_value(document, property, value, &format!("{at}.{name}"));
    }
}

#[tokio::test]
async fn a_node_of_no_cluster_says_so_and_serves_nothing_else() {
    let node = opening().await;
    let cluster = node.call("GET", "/cluster", Value::Null).await;
    check_body(&cluster, "get", "/cluster");
    assert_eq!(cluster.body["clusterId"], Value::Null);
    assert_eq!((&cluster.body["nodeId"], &cluster.body["leader"]), (&Value::Null, &Value::Null));
    let itself = json!([{"id": 0, "role": "new", "peer": node.me.peer, "http": node.me.http, "native": "",
                         "priority": 0, "healthy": true, "appliedIndex": 0}]);
    assert_eq!(cluster.body["nodes"], itself);
    let live = node.call("GET", "/livez", Value::Null).await;
    assert_eq!((live.status, &live.body["live"]), (200, &json!(true)));
    assert_eq!(node.call("GET", "/openapi.json", Value::Null).await.text, openapi_json());
    assert!(
        node.call("GET", "/metrics", Value::Null).await.text.contains("kunci_connections{door=\"http\"} 1\n")
    );

    let add = json!({"peer": "127.0.0.1:1"});
    for (method, path, body) in [
        ("GET", "/readyz", Value::Null),
        ("GET", "/locks/r", Value::Null),
        ("GET", "/events", Value::Null),
        ("POST", "/locks/r/acquire", json!({"clientId": "a"})),
        ("POST", "/cluster/add", add),
    ] {
        let refused = node.call(method, path, body).await;
        assert!(refused.is(503, "no_leader"), "{method} {path}: {}", refused.text);
        assert!(refused.text.contains("kunci cluster init") && refused.body["applied"] == "no");
        assert!(refused.headers.contains_key("retry-after") && refused.headers["kunci-position"] == "0.0");
        assert!(
            !refused.headers.contains_key("kunci-cluster") && !refused.headers.contains_key("kunci-leader")
        );
    }
    assert!(node.call("GET", "/nowhere", Value::Null).await.is(404, "not_found"));
    node.stop.cancel();
    timeout(SOON, node.door).await.unwrap().unwrap();
}

#[tokio::test]
async fn init_forms_a_cluster_once_and_open_connections_are_served_by_it() {
    let node = opening().await;
    let mut early = connect(node.address).await;
    assert!(early.call("GET", "/locks/r", Value::Null).await.is(503, "no_leader"));
    let wrong = node.call("POST", "/cluster/init", json!({"tokenFloor": 1_u64 << 53})).await;
    assert!(wrong.is(400, "invalid") && wrong.body["field"] == "tokenFloor", "{}", wrong.text);
    let wrong = node.call("POST", "/cluster/init", Value::Null).await;
    assert!(wrong.is(400, "invalid"), "{}", wrong.text);

    let Opening { address, me, http, peers, stop, door, wire: _, data } = node;
    let forming = async {
        // The first try fails, and the node goes on waiting.
        http.asked_to_form().await.failed("the disk is full".to_owned());
        let asked = http.asked_to_form().await;
        let config = ReplicaConfig::new(data.path(), me);
        let replica = Replica::form(config, peers, asked.token_floor).await.unwrap();
        http.enter(Service::new(replica.clone()));
        asked.formed();
        replica
    };
    let asking = async {
        let failed = connect(address).await.call("POST", "/cluster/init", json!({})).await;
        assert!(failed.is(503, "no_leader") && failed.text.contains("the disk is full"), "{}", failed.text);
        connect(address).await.call("POST", "/cluster/init", json!({"tokenFloor": 1_000})).await
    };
    let (replica, formed) = tokio::join!(forming, asking);
    assert_eq!(formed.status, 200, "{}", formed.text);
    check_body(&formed, "post", "/cluster/init");
    assert_eq!(formed.body["nodeId"], 1);
    assert_eq!(formed.body["clusterId"], replica.cluster_id().to_string());

    let grant = early.call("POST", "/locks/r/acquire", json!({"clientId": "a"})).await;
    assert_eq!(grant.status, 200, "{}", grant.text);
    assert!(grant.body["fencingToken"].as_u64().unwrap() > 1_000, "{}", grant.text);
    let again = early.call("POST", "/cluster/init", json!({})).await;
    assert!(again.is(409, "already_formed"), "{}", again.text);
    check_body(&again, "post", "/cluster/init");
    stop.cancel();
    timeout(SOON, door).await.unwrap().unwrap();
    replica.stop().await;
}

/// Somebody else was faster: an invitation came while a call to form a cluster waited.
#[tokio::test]
async fn a_node_that_was_taken_in_meanwhile_refuses_to_form_a_cluster() {
    let member = Node::start().await;
    let mut new = opening().await;
    let mut init = connect(new.address).await;
    let body = json!({});
    init.send(&http_support::request("POST", "/cluster/init", &body)).await;
    let peer = new.me.peer.clone();
    let invited = async {
        let invited = new.peers.invitation(&new.me).await;
        let replica = Replica::join(ReplicaConfig::new(new.data.path(), new.me.clone()), new.peers, invited)
            .await
            .unwrap();
        new.http.enter(Service::new(replica.clone()));
        replica
    };
    let (added, replica) = tokio::join!(member.post("/cluster/add", json!({"peer": peer})), invited);
    assert_eq!(added.status, 200, "{}", added.text);
    let refused = init.reply().await;
    assert!(refused.is(409, "already_formed"), "{}", refused.text);
    replica.stop().await;
}

#[tokio::test]
async fn the_cluster_tells_how_it_stands_on_every_node() {
    let nodes = three().await;
    for node in &nodes {
        until("every member is healthy", async || {
            let cluster = node.get("/cluster").await;
            cluster.body["nodes"].as_array().unwrap().iter().all(|node| node["healthy"] == true)
        })
        .await;
        let cluster = node.get("/cluster").await;
        check_body(&cluster, "get", "/cluster");
        assert_eq!(cluster.body["clusterId"], cluster.headers["kunci-cluster"]);
        assert_eq!((&cluster.body["leader"], &cluster.body["nextNodeId"]), (&json!(1), &json!(4)));
        assert_eq!(cluster.body["warnings"], json!([]), "{}", cluster.text);
        for (member, shown) in nodes.iter().zip(cluster.body["nodes"].as_array().unwrap()) {
            assert_eq!(
                (&shown["id"], &shown["http"]),
                (&json!(member.replica.node_id()), &json!(member.address.to_string()))
            );
        }
        let ready = node.get("/readyz").await;
        check_body(&ready, "get", "/readyz");
    }
}

#[tokio::test]
async fn members_are_added_replaced_removed_and_moved_by_any_node() {
    let [first, second, third] = three().await;
    let again = second.post("/cluster/add", json!({"peer": third.peer})).await;
    assert_eq!((again.status, &again.body["already"]), (200, &json!(true)), "{}", again.text);
    check_body(&again, "post", "/cluster/add");
    let moved = third.post("/cluster/transfer", json!({})).await;
    assert_eq!(moved.status, 200, "{}", moved.text);
    check_body(&moved, "post", "/cluster/transfer");

    // The third goes, and a new node comes in its place.
    let fourth = http_support::cluster::replace(&second, &third).await;
    assert_eq!(fourth.replica.node_id(), 4);
    until("the new node has taken the place", async || {
        let cluster = first.get("/cluster").await;
        let ids: Vec<u64> = cluster.body["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| node["id"].as_u64().unwrap())
            .collect();
        ids == [1, 2, 4]
    })
    .await;
    let removed = fourth.post("/cluster/remove", json!({"nodeId": 2})).await;
    assert_eq!((removed.status, &removed.body["removed"]), (200, &json!(true)), "{}", removed.text);
    check_body(&removed, "post", "/cluster/remove");
    let removed = fourth.post("/cluster/remove", json!({"nodeId": 2})).await;
    assert_eq!(removed.body["already"], true, "{}", removed.text);
    assert_eq!(fourth.acquire("r", "a").await.status, 200);
    let warned = fourth.get("/cluster").await.body["warnings"].clone();
    assert!(warned[0].as_str().unwrap().starts_with("2 voters"), "{warned}");
}

#[tokio::test]
async fn changes_that_cant_be_made_are_refused_with_a_code() {
    let node = Node::start().await;
    let other = Node::start().await;
    for (path, body, status, code) in [
        ("add", json!({"peer": "127.0.0.1:1"}), 503, "peer_unreachable"),
        ("add", json!({"peer": other.peer}), 409, "other_cluster"),
        ("add", json!({"peer": "nowhere"}), 400, "invalid"),
        ("add", json!({}), 400, "invalid"),
        ("replace", json!({"nodeId": 7, "peer": "127.0.0.1:1"}), 409, "unknown_node"),
        ("replace", json!({"nodeId": 0, "peer": "127.0.0.1:1"}), 400, "invalid"),
        ("remove", json!({"nodeId": 7}), 409, "unknown_node"),
        ("remove", json!({"nodeId": 1}), 409, "unsafe_change"),
        ("remove", json!({"nodeId": 1, "force": "yes"}), 400, "invalid"),
        ("transfer", json!({"to": 7}), 409, "unknown_node"),
        ("transfer", json!({}), 409, "not_ready"),
        ("init", json!({}), 409, "already_formed"),
    ] {
        let path = format!("/cluster/{path}");
        let refused = node.post(&path, body.clone()).await;
        assert!(refused.is(status, code), "{path} {body}: {}", refused.text);
        assert_eq!(refused.body["applied"], "no");
        check_body(&refused, "post", &path);
    }
}
