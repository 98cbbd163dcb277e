//! Every call of the HTTP door over a real socket and a real replica: what it answers and what it refuses.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]

mod http_support;

use http_support::{Node, until};
use kunci_server::http::openapi_json;
use serde_json::{Value, json};

/// `KUNCI_BLESS=1` writes the document anew.
#[test]
fn the_committed_openapi_document_is_what_is_served() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    if std::env::var_os("KUNCI_BLESS").is_some() {
        std::fs::write(path, openapi_json()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == openapi_json(),
        "docs/openapi.json differs from the code: write it with KUNCI_BLESS=1"
    );
}

#[test]
fn every_field_and_call_of_the_openapi_document_says_what_it_is() {
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            assert!(property["description"].is_string(), "{name}.{field} has no description");
        }
    }
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, call) in methods.as_object().unwrap() {
            assert!(call["summary"].is_string(), "{method} {path} has no summary");
        }
    }
}

#[tokio::test]
async fn a_lock_goes_from_hand_to_hand() {
    let node = Node::start().await;
    let first = node.acquire("orders%2F42", "a").await;
    assert_eq!(first.status, 200, "{}", first.text);
    assert_eq!(first.body["acquired"], true);
    assert_eq!(first.body["leaseId"].as_str().unwrap().len(), 22);
    assert_eq!(first.body["requestId"].as_str().unwrap().len(), 22);
    assert_eq!(first.body["revision"], first.body["fencingToken"]);
    assert_eq!(first.body["remainingMs"], 30_000);
    assert!(first.body["expiresAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(first.headers["content-type"], "application/json");
    assert_eq!(first.headers["kunci-cluster"].len(), 32);
    let (index, place) = first.headers["kunci-position"].split_once('.').unwrap();
    assert!(index.parse::<u64>().unwrap() > 0 && place.parse::<u64>().is_ok());

    let held = node.acquire("orders%2F42", "b").await;
    assert!(held.is(409, "held"), "{}", held.text);
    assert_eq!(held.headers["content-type"], "application/problem+json");
    assert_eq!(held.body["acquired"], false);
    assert_eq!(held.body["applied"], "no");
    assert_eq!(held.body["holder"], "a");
    assert_eq!(held.body["fencingToken"], first.body["fencingToken"]);
    assert_eq!(held.body["queueLength"], 0);
    assert!(held.body["remainingMs"].as_u64().unwrap() > 29_000);
    assert_eq!(held.body["type"], "urn:kunci:error:held");
    assert_eq!((held.body["status"].as_u64(), held.body["revision"].as_u64()), (Some(409), Some(1)));

    let status = node.get("/locks/orders%2F42").await;
    assert_eq!((&status.body["held"], &status.body["resource"]), (&json!(true), &json!("orders/42")));
    assert_eq!(status.body["holder"], "a");
    assert!(status.body.get("leaseId").is_none() && status.body.get("requestId").is_none());

    let renewed = node.post(
        "/locks/orders%2F42/renew",
        json!({"leaseId": first.body["leaseId"], "leaseDurationMs": 60_000}),
    );
    let renewed = renewed.await;
    assert_eq!((renewed.status, &renewed.body["renewed"]), (200, &json!(true)), "{}", renewed.text);
    assert_eq!(renewed.body["remainingMs"], 60_000);
    assert!(renewed.body["newExpiresAt"].is_string() && renewed.body["revision"].is_u64());

    let released = node.call("DELETE", "/locks/orders%2F42", json!({"leaseId": first.body["leaseId"]})).await;
    assert_eq!((released.status, &released.body["released"]), (200, &json!(true)));
    assert!(released.body.get("already").is_none());
    let again = node.release("orders%2F42", &first).await;
    assert_eq!((again.status, &again.body["already"]), (200, &json!(true)));
    let late = node.post("/locks/orders%2F42/renew", json!({"leaseId": first.body["leaseId"]})).await;
    assert!(late.is(409, "lease_ended"), "{}", late.text);
    assert_eq!((&late.body["renewed"], &late.body["reason"]), (&json!(false), &json!("released")));

    let free = node.get("/locks/orders%2F42").await;
    assert_eq!((free.status, &free.body["held"]), (200, &json!(false)));
    let second = node.acquire("orders%2F42", "b").await;
    assert!(second.body["fencingToken"].as_u64() > first.body["fencingToken"].as_u64());
    node.stop().await;
}

/// Defends S3: the proof is the lease id, or owner and token where the policy allows it.
#[tokio::test]
async fn a_wrong_proof_is_refused_and_owner_and_token_serve_where_allowed() {
    let node = Node::start().await;
    let grant = node.acquire("r", "a").await;
    let stranger = node.post("/locks/r/release", json!({"leaseId": "A".repeat(22)})).await;
    assert!(stranger.is(409, "not_holder"), "{}", stranger.text);
    assert_eq!(
        (&stranger.body["released"], &stranger.body["reason"]),
        (&json!(false), &json!("unknown_lease"))
    );
    let malformed = node.post("/locks/r/release", json!({"leaseId": "A".repeat(21)})).await;
    assert!(malformed.is(400, "invalid") && malformed.body["field"] == "leaseId", "{}", malformed.text);
    let by_token = json!({"clientId": "a", "fencingToken": grant.body["fencingToken"]});
    assert_eq!(node.post("/locks/r/renew", by_token.clone()).await.status, 200);

    let policy = node.get("/policy").await;
    assert_eq!(policy.body["policy"]["ttlMsMax"], 3_600_000);
    let change = json!({"replaces": policy.body["policyRevision"], "policy": {"ownerTokenProof": false}});
    let changed = node.call("PUT", "/policy", change.clone()).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert_eq!(changed.body["policy"]["ownerTokenProof"], false);
    let stale = node.call("PUT", "/policy", change).await;
    assert!(stale.is(409, "policy_changed"), "{}", stale.text);
    assert_eq!(stale.body["policyRevision"], changed.body["policyRevision"]);
    let impossible = json!({"replaces": changed.body["policyRevision"], "policy": {"ttlMsMax": 10}});
    let impossible = node.call("PUT", "/policy", impossible).await;
    assert!(
        impossible.is(422, "out_of_policy") && impossible.body["field"] == "ttlMsMax",
        "{}",
        impossible.text
    );

    let by_token = node.post("/locks/r/renew", by_token).await;
    assert!(
        by_token.is(409, "not_holder") && by_token.body["reason"] == "proof_not_allowed",
        "{}",
        by_token.text
    );
    node.stop().await;
}

/// Case C95, over the wire: 422 with the bounds, and never a panic.
#[tokio::test]
async fn values_out_of_policy_are_refused_with_its_bounds() {
    let node = Node::start().await;
    for (field, ms) in [
        ("leaseDurationMs", 0),
        ("leaseDurationMs", 3_600_001),
        ("leaseDurationMs", u64::MAX),
        ("waitTimeoutMs", 3_600_001),
        ("waitTimeoutMs", u64::MAX),
        ("lockDelayMs", 60_001),
        ("lockDelayMs", u64::MAX),
    ] {
        let refused = node.post("/locks/r/acquire", json!({"clientId": "a", field: ms})).await;
        assert!(refused.is(422, "out_of_policy"), "{field} {ms}: {}", refused.text);
        assert_eq!(refused.body["field"], field);
        assert_eq!(refused.body["foundMs"], ms);
        assert!(refused.body["maxMs"].is_u64() && refused.body["minMs"].is_u64());
    }
    assert_eq!(node.get("/locks/r").await.body["held"], false);
    node.stop().await;
}

#[tokio::test]
async fn many_leases_are_renewed_in_one_request_each_on_its_own_account() {
    let node = Node::start().await;
    let (a, b) = (node.acquire("a", "x").await, node.acquire("b", "x").await);
    node.release("b", &b).await;
    let lease = |name: &str, id: &Value| json!({"resource": name, "leaseId": id});
    let leases = json!({"leases": [lease("b", &b.body["leaseId"]), lease("a", &a.body["leaseId"])]});
    let renewed = node.post("/leases/renew", leases).await;
    assert_eq!(renewed.status, 200, "{}", renewed.text);
    let results = renewed.body["results"].as_array().unwrap();
    assert_eq!((&results[0]["resource"], &results[0]["renewed"]), (&json!("b"), &json!(false)));
    assert_eq!(results[0]["problem"]["code"], "lease_ended");
    assert_eq!((&results[1]["renewed"], &results[1]["remainingMs"]), (&json!(true), &json!(30_000)));

    let bad = json!({"leases": [lease("a", &a.body["leaseId"]), lease("a\u{7}", &a.body["leaseId"])]});
    let bad = node.post("/leases/renew", bad).await;
    assert!(bad.is(400, "invalid") && bad.body["field"] == "leases[1].resource", "{}", bad.text);
    assert!(node.post("/leases/renew", json!({"leases": []})).await.is(400, "invalid"));
    node.stop().await;
}

#[tokio::test]
async fn lists_come_in_pages_and_histories_in_order() {
    let node = Node::start().await;
    for name in ["p%2Fa", "p%2Fb", "p%2Fc", "q"] {
        node.acquire(name, "x").await;
    }
    let names = |page: &Value| -> Vec<String> {
        let locks = page["locks"].as_array().unwrap().iter();
        locks.map(|lock| lock["resource"].as_str().unwrap().to_owned()).collect()
    };
    let page = node.get("/locks?prefix=p%2F&limit=2").await;
    assert_eq!((names(&page.body), &page.body["next"]), (vec!["p/a".into(), "p/b".into()], &json!("p/b")));
    let page = node.get("/locks?prefix=p%2F&limit=2&after=p%2Fb").await;
    assert_eq!(names(&page.body), ["p/c"]);
    assert!(page.body.get("next").is_none());
    assert_eq!(names(&node.get("/locks").await.body).len(), 4);
    for bad in [
        "/locks?limit=0",
        "/locks?limit=1001",
        "/locks?limt=1",
        "/locks?limit=1&limit=2",
        "/hot?x=1",
        "/expiring?limit=0",
        "/locks/q/history?limit=0",
    ] {
        let refused = node.get(bad).await;
        assert!(refused.is(400, "invalid"), "{bad}: {}", refused.text);
    }
    let history = node.get("/locks/p%2Fa/history").await;
    assert_eq!(history.body["events"][0]["kind"], "granted");
    assert_eq!(history.body["events"][0]["owner"], "x");
    assert_eq!(names(&node.get("/hot").await.body), [""; 0]);
    node.stop().await;
}

#[tokio::test]
async fn the_next_lease_to_end_comes_first_and_a_history_can_be_cut_to_its_last_events() {
    let node = Node::start().await;
    for (name, ms) in [("late", 90_000), ("soon", 20_000), ("next", 30_000)] {
        let body = json!({"clientId": "x", "leaseDurationMs": ms});
        node.post(&format!("/locks/{name}/acquire"), body).await;
    }
    let expiring = async |query: &str| {
        let page = node.get(&format!("/expiring{query}")).await.body;
        let locks = page["locks"].as_array().unwrap().clone();
        locks.into_iter().map(|lock| lock["resource"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(expiring("").await, ["soon", "next", "late"]);
    assert_eq!(expiring("?limit=1").await, ["soon"]);

    for _ in 0..3 {
        let grant = node.acquire("r", "x").await;
        node.release("r", &grant).await;
    }
    let history = node.get("/locks/r/history?limit=2").await.body;
    let kinds: Vec<&Value> =
        history["events"].as_array().unwrap().iter().map(|event| &event["kind"]).collect();
    assert_eq!(kinds, ["granted", "released"], "the last two, oldest first");
    let last = history["events"][1]["clusterTimeMs"].as_u64().unwrap();
    assert!(history["clusterTimeMs"].as_u64().unwrap() >= last, "{history}");
    node.stop().await;
}

#[tokio::test]
async fn an_operator_ends_the_lease_that_was_meant_and_no_other() {
    let node = Node::start().await;
    let grant = node.acquire("r", "a").await;
    let token = grant.body["fencingToken"].as_u64().unwrap();
    let force = |token: u64| json!({"fencingToken": token, "reason": "host is gone"});
    let other = node.post("/locks/r/force-release", force(token + 1)).await;
    assert!(other.is(409, "not_holder") && other.body["reason"] == "other_lease", "{}", other.text);
    assert_eq!(other.body["fencingToken"], token);
    let forced = node.post("/locks/r/force-release", force(token)).await;
    assert_eq!((forced.status, &forced.body["holder"]), (200, &json!("a")), "{}", forced.text);
    let none = node.post("/locks/r/force-release", force(token)).await;
    assert!(none.is(409, "not_holder") && none.body["reason"] == "not_held", "{}", none.text);
    let renewed = node.post("/locks/r/renew", json!({"leaseId": grant.body["leaseId"]})).await;
    assert!(renewed.is(409, "lease_ended") && renewed.body["reason"] == "forced", "{}", renewed.text);
    node.stop().await;
}

#[tokio::test]
async fn a_lock_delay_follows_a_forced_release_and_a_try_hears_of_it() {
    let node = Node::start().await;
    let grant = node.post("/locks/r/acquire", json!({"clientId": "a", "lockDelayMs": 30_000})).await;
    let force = json!({"fencingToken": grant.body["fencingToken"], "reason": "test"});
    node.post("/locks/r/force-release", force).await;
    let closed = node.acquire("r", "b").await;
    assert!(closed.is(409, "lock_delay"), "{}", closed.text);
    assert!(closed.body["remainingMs"].as_u64().unwrap() > 20_000);
    let status = node.get("/locks/r").await;
    assert_eq!(status.body["held"], false);
    assert!(status.body["lockDelayMs"].is_u64());
    node.stop().await;
}

async fn change_policy(node: &Node, policy: Value) {
    let replaces = node.get("/policy").await.body["policyRevision"].clone();
    let changed = node.call("PUT", "/policy", json!({"replaces": replaces, "policy": policy})).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
}

#[tokio::test]
async fn a_renewal_at_the_total_hold_limit_is_final_and_an_expired_lease_is_told_so() {
    let node = Node::start().await;
    change_policy(&node, json!({"ttlMsMax": 1_000, "ttlMsDefault": 1_000, "totalHoldMsMax": 1_000})).await;
    let grant = node.acquire("r", "a").await;
    let renew = json!({"leaseId": grant.body["leaseId"]});
    let last = node.post("/locks/r/renew", renew.clone()).await;
    assert_eq!((last.status, &last.body["final"]), (200, &json!(true)), "{}", last.text);
    until("the lease has expired", async || node.get("/locks/r").await.body["held"] == false).await;
    let late = node.post("/locks/r/renew", renew.clone()).await;
    assert!(late.is(409, "lease_ended") && late.body["reason"] == "expired", "{}", late.text);
    let late = node.post("/locks/r/release", renew).await;
    assert!(late.is(409, "lease_ended") && late.body["reason"] == "expired", "{}", late.text);
    let request_id = grant.body["requestId"].clone();
    let again = node.post("/locks/r/acquire", json!({"clientId": "a", "requestId": request_id})).await;
    assert!(again.is(409, "lease_ended") && again.body["repeated"] == true, "{}", again.text);
    node.stop().await;
}

#[tokio::test]
async fn a_limit_that_is_reached_is_named_and_says_when_to_come_back() {
    let node = Node::start().await;
    change_policy(&node, json!({"waitersPerResourceMax": 0, "leasesPerNamespaceMax": 1})).await;
    node.acquire("n%2F1", "a").await;
    let queue = json!({"clientId": "b", "waitTimeoutMs": 1_000});
    let refused = node.post("/locks/n%2F1/acquire", queue).await;
    assert!(refused.is(429, "over_limit"), "{}", refused.text);
    assert_eq!((&refused.body["limit"], &refused.body["max"]), (&json!("waitersPerResourceMax"), &json!(0)));
    assert_eq!(refused.headers["retry-after"], "2");
    assert_eq!(refused.body["retryAfterMs"], 2_000);
    let refused = node.acquire("n%2F2", "a").await;
    assert!(refused.is(429, "over_limit"), "{}", refused.text);
    assert_eq!(
        (&refused.body["limit"], &refused.body["acquired"]),
        (&json!("leasesPerNamespaceMax"), &json!(false))
    );
    node.stop().await;
}

/// Case C96, over the wire.
#[tokio::test]
async fn a_token_beyond_what_json_carries_is_refused() {
    let node = Node::start().await;
    node.acquire("r", "a").await;
    for token in [0, 1_u64 << 53, (1 << 53) + 1, u64::MAX >> 1] {
        let refused = node.post("/locks/r/release", json!({"clientId": "a", "fencingToken": token})).await;
        assert!(refused.is(400, "invalid") && refused.body["field"] == "fencingToken", "{}", refused.text);
    }
    assert_eq!(node.get("/locks/r").await.body["held"], true);
    node.stop().await;
}

#[tokio::test]
async fn a_stale_token_is_reported_and_counted() {
    let node = Node::start().await;
    let report = json!({"resource": "r", "token": 3, "current": 5});
    let taken = node.post("/fencing-rejections", report).await;
    assert_eq!((taken.status, &taken.body["recorded"]), (200, &json!(true)));
    let wrong = node.post("/fencing-rejections", json!({"resource": "r", "token": 5, "current": 5})).await;
    assert!(wrong.is(400, "invalid"), "{}", wrong.text);
    assert!(node.get("/metrics").await.text.contains("kunci_fencing_rejections_total 1\n"));
    node.stop().await;
}

#[tokio::test]
async fn the_node_tells_how_it_stands() {
    let node = Node::start().await;
    let cluster = node.get("/cluster").await;
    assert_eq!(cluster.body["clusterId"], cluster.headers["kunci-cluster"]);
    assert_eq!(cluster.body["nodes"][0]["role"], "leader");
    assert_eq!(cluster.body["nodes"][0]["healthy"], true);
    assert_eq!(cluster.body["nodes"][0]["disk"], "ok");
    assert_eq!(cluster.body["leader"], cluster.body["nodes"][0]["id"]);
    assert!(cluster.body["clusterTimeMs"].is_u64() && cluster.body["revision"].is_u64());
    assert_eq!(node.get("/livez").await.body["live"], true);
    assert_eq!(node.get("/readyz").await.body["ready"], true);
    assert_eq!(node.get("/openapi.json").await.text, openapi_json());
    let metrics = node.get("/metrics").await;
    assert!(metrics.text.contains("kunci_serving 1\n"), "{}", metrics.text);
    assert_eq!(metrics.headers["kunci-cluster"].len(), 32);
    node.stop().await;
}

/// Case C101, and what isn't a call at all.
#[tokio::test]
async fn what_is_malformed_is_refused_with_a_code() {
    let node = Node::start().await;
    for (method, path, status, code) in [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/locks/orders/42", 404, "not_found"),
        ("POST", "/locks/r/aquire", 404, "not_found"),
        ("PUT", "/locks/r", 405, "method_not_allowed"),
        ("GET", "/locks/r/acquire", 405, "method_not_allowed"),
        ("GET", "/locks/%zz", 400, "invalid"),
        ("GET", "/locks/a%2", 400, "invalid"),
        ("GET", "/locks/%ff", 400, "invalid"),
        ("GET", "/locks/a%00b", 400, "invalid"),
        ("GET", "/locks/%20a", 400, "invalid"),
        ("GET", "/locks/e%CC%81", 400, "invalid"),
        ("POST", "/locks/r/acquire", 400, "invalid"),
    ] {
        let refused = node.call(method, path, Value::Null).await;
        assert!(refused.is(status, code), "{method} {path}: {}", refused.text);
        assert_eq!(refused.headers["content-type"], "application/problem+json");
        assert_eq!(refused.body["applied"], "no");
        assert!(refused.body["revision"].is_u64() && refused.headers.contains_key("kunci-position"));
    }
    assert_eq!(node.call("PUT", "/locks/r", Value::Null).await.headers["allow"], "GET,HEAD,DELETE");
    let unknown = node.post("/locks/r/acquire", json!({"clientId": "a", "leaseTTL": 5})).await;
    assert!(unknown.is(400, "invalid") && unknown.body["detail"].as_str().unwrap().contains("leaseTTL"));
    assert_eq!(node.get("/locks/r").await.body["held"], false);

    let mut connection = node.connect().await;
    let body = r#"{"clientId":"a"}"#;
    let head = "POST /locks/r/acquire HTTP/1.1\r\nhost: k\r\ncontent-length: 16\r\n";
    connection.send(&format!("{head}\r\n{body}")).await;
    assert!(connection.reply().await.is(415, "unsupported_media_type"));
    connection.send(&format!("{head}content-type: text/plain\r\n\r\n{body}")).await;
    assert!(connection.reply().await.is(415, "unsupported_media_type"));
    connection.send(&format!("{head}content-type: application/json; charset=utf-8\r\n\r\n{body}")).await;
    assert_eq!(connection.reply().await.status, 200);
    node.stop().await;
}

#[tokio::test]
async fn names_of_any_script_come_through_as_they_are() {
    let node = Node::start().await;
    for (encoded, name) in
        [("%E9%94%81", "锁"), ("a%20b", "a b"), ("%2E%2E", ".."), ("a%25b", "a%b"), ("a+b", "a+b")]
    {
        assert_eq!(node.acquire(encoded, "é").await.status, 200, "{name}");
        let status = node.get(&format!("/locks/{encoded}")).await;
        assert_eq!((&status.body["resource"], &status.body["holder"]), (&json!(name), &json!("é")));
    }
    node.stop().await;
}
