//! Calls to a node that doesn't lead: passed on to the leader, and no different for their clients.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]
#![expect(clippy::unwrap_used, reason = "a test helper fails by panicking")]

mod http_support;

use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, Full};
use http_support::cluster::{join, leader, three, three_with};
use http_support::{Connection, Node, Reply, SOON, request, until};
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kunci_replica::Lead;
use kunci_server::http::HttpLimits;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Nothing that happens at once takes this long.
const AT_ONCE: Duration = Duration::from_secs(3);

fn wait(owner: &str, request_id: &str) -> Value {
    json!({"clientId": owner, "requestId": request_id, "waitTimeoutMs": 600_000})
}

async fn waiting(node: &Node, body: &Value) -> Connection {
    let mut connection = node.connect().await;
    connection.send(&request("POST", "/locks/r/acquire", body)).await;
    connection
}

/// What every answer of a cluster has, and what belongs on the way between its nodes only.
fn check_headers(reply: &Reply, leader: &Node) {
    assert_eq!(reply.headers["kunci-leader"], leader.address.to_string());
    assert_eq!(reply.headers["kunci-cluster"].len(), 32);
    assert!(reply.headers.contains_key("kunci-position") && reply.headers.contains_key("cache-control"));
    for inner in ["kunci-refusal", "kunci-request-id", "kunci-forwarded"] {
        assert!(!reply.headers.contains_key(inner), "{inner} shows: {:?}", reply.headers);
    }
}

#[tokio::test]
async fn every_call_is_answered_by_every_node() {
    let [first, second, third] = three().await;
    let grant = second.acquire("orders%2F42", "a").await;
    assert_eq!((grant.status, &grant.body["acquired"]), (200, &json!(true)), "{}", grant.text);
    check_headers(&grant, &first);
    let held = third.acquire("orders%2F42", "b").await;
    assert!(held.is(409, "held") && held.body["holder"] == "a", "{}", held.text);
    assert_eq!(held.headers["content-type"], "application/problem+json");
    check_headers(&held, &first);

    for node in [&first, &second, &third] {
        let status = node.get("/locks/orders%2F42").await;
        assert_eq!((status.status, &status.body["holder"]), (200, &json!("a")), "{}", status.text);
        check_headers(&status, &first);
        let renewed = node.post("/locks/orders%2F42/renew", json!({"leaseId": grant.body["leaseId"]})).await;
        assert_eq!(renewed.status, 200, "{}", renewed.text);
        let lease = json!({"resource": "orders/42", "leaseId": grant.body["leaseId"]});
        let many = node.post("/leases/renew", json!({"leases": vec![lease; 3_000]})).await;
        assert_eq!(many.body["results"].as_array().map(Vec::len), Some(3_000), "{}", many.text);
        assert_eq!(
            node.get("/locks?prefix=orders%2F&limit=1").await.body["locks"][0]["resource"],
            "orders/42"
        );
        assert_eq!(node.get("/locks/orders%2F42/history").await.body["events"][0]["kind"], "granted");
        assert_eq!(node.get("/locks/orders%2F42/queue").await.body["waiters"], json!([]));
        assert_eq!(node.get("/hot").await.status, 200);
        assert_eq!(node.get("/policy").await.body["policy"]["ttlMsMax"], 3_600_000);
        // What the leader refuses is refused in its words.
        assert!(node.get("/locks?limit=0").await.is(400, "invalid"));
        assert!(node.get("/locks/%zz").await.is(400, "invalid"));
        let unknown = node.post("/locks/r/acquire", json!({"clientId": "a", "leaseTTL": 5})).await;
        assert!(unknown.is(400, "invalid") && unknown.text.contains("leaseTTL"), "{}", unknown.text);
        assert!(node.get("/nowhere").await.is(404, "not_found"));
        assert_eq!(node.call("PUT", "/locks/r", Value::Null).await.headers["allow"], "GET,HEAD,DELETE");
        // And what it is about is answered by the node itself.
        assert_eq!(node.get("/cluster").await.body["nodeId"], node.replica.node_id());
        assert_eq!(node.get("/readyz").await.status, 200);
        assert!(node.get("/metrics").await.text.contains("kunci_http_passed_on_total "));
    }
    let mut odd = second.connect().await;
    odd.send("HEAD /locks/orders%2F42 HTTP/1.1\r\nhost: k\r\n\r\n").await;
    let (status, headers) = odd.head().await.unwrap();
    assert!(status == 200 && headers["content-length"].parse::<u64>().unwrap() > 0);
    odd.send("GET http://k/locks/orders%2F42?x=1 HTTP/1.1\r\nhost: k\r\n\r\n").await;
    assert_eq!(odd.reply().await.body["holder"], "a");

    let proof = json!({"leaseId": grant.body["leaseId"]});
    let released = third.call("DELETE", "/locks/orders%2F42", proof).await;
    assert_eq!((released.status, &released.body["released"]), (200, &json!(true)), "{}", released.text);
    assert_eq!(second.release("orders%2F42", &grant).await.body["already"], true);
    for node in [first, second, third] {
        node.stop().await;
    }
}

#[tokio::test]
async fn limits_hold_at_the_node_that_the_client_has_chosen() {
    let [_first, second, _third] = three().await;
    const HEAD: &str = "POST /locks/r/acquire HTTP/1.1\r\nhost: k\r\ncontent-type: application/json\r\n";
    let mut large = second.connect().await;
    large.send(&format!("{HEAD}content-length: 70000\r\n\r\n")).await;
    assert!(large.reply().await.is(413, "too_large"));
    let mut chunked = second.connect().await;
    let body = "x".repeat(65_537);
    chunked.send(&format!("{HEAD}transfer-encoding: chunked\r\n\r\n10001\r\n{body}\r\n0\r\n\r\n")).await;
    assert!(chunked.reply().await.is(413, "too_large"));
    let mut chunked = second.connect().await;
    let body = r#"{"clientId":"a"}"#;
    chunked.send(&format!("{HEAD}transfer-encoding: chunked\r\n\r\n10\r\n{body}\r\n0\r\n\r\n")).await;
    assert_eq!(chunked.reply().await.status, 200);
    let mut plain = second.connect().await;
    plain
        .send(&format!("POST /locks/q/acquire HTTP/1.1\r\nhost: k\r\ncontent-length: 16\r\n\r\n{body}"))
        .await;
    assert!(plain.reply().await.is(415, "unsupported_media_type"));
}

#[tokio::test]
async fn waits_and_cancels_go_through_any_node() {
    let [first, second, third] = three().await;
    let grant = first.acquire("r", "a").await;
    let mut b = waiting(&second, &wait("b", "b-1")).await;
    first.attached("r", 1).await;
    let mut c = waiting(&third, &wait("c", "c-1")).await;
    third.attached("r", 2).await;
    // The newest call of a request gets the answer, wherever it came in.
    let mut again = waiting(&third, &wait("b", "b-1")).await;
    assert!(timeout(AT_ONCE, b.reply()).await.unwrap().is(409, "superseded"));

    second.release("r", &grant).await;
    let handed = timeout(AT_ONCE, again.reply()).await.unwrap();
    assert_eq!((handed.status, &handed.body["requestId"]), (200, &json!("b-1")), "{}", handed.text);
    check_headers(&handed, &first);
    let cancelled = second.post("/locks/r/cancel", json!({"clientId": "c", "requestId": "c-1"})).await;
    assert_eq!((cancelled.status, &cancelled.body["cancelled"]), (200, &json!(true)), "{}", cancelled.text);
    assert!(timeout(AT_ONCE, c.reply()).await.unwrap().is(409, "cancelled"));
}

#[tokio::test]
async fn a_wait_through_another_node_is_sent_away_in_time_too() {
    let limits = HttpLimits { hold: Duration::from_millis(300), ..HttpLimits::default() };
    let [first, second, _third] = three_with(limits).await;
    first.acquire("r", "a").await;
    let queued = second.post("/locks/r/acquire", wait("b", "b-1")).await;
    assert_eq!((queued.status, &queued.body["position"]), (202, &json!(1)), "{}", queued.text);
    first.attached("r", 0).await;
}

/// Case C62, and L3 through another node: the client's connection is the call's, however many nodes are between.
#[tokio::test]
async fn a_client_that_goes_away_from_one_node_keeps_its_place_at_another() {
    let [first, second, third] = three().await;
    let grant = first.acquire("r", "a").await;
    let b = waiting(&second, &wait("b", "b-1")).await;
    first.attached("r", 1).await;
    let mut c = waiting(&second, &wait("c", "c-1")).await;
    first.attached("r", 2).await;

    drop(b);
    timeout(AT_ONCE, first.attached("r", 1)).await.unwrap();
    let mut back = waiting(&third, &wait("b", "b-1")).await;
    first.attached("r", 2).await;
    let queue = first.get("/locks/r/queue").await;
    assert_eq!(
        (&queue.body["waiters"][0]["owner"], &queue.body["waiters"][1]["owner"]),
        (&json!("b"), &json!("c"))
    );
    second.release("r", &grant).await;
    let granted = timeout(AT_ONCE, back.reply()).await.unwrap();
    assert_eq!((granted.status, &granted.body["requestId"]), (200, &json!("b-1")), "{}", granted.text);
    third.release("r", &granted).await;
    assert_eq!(timeout(AT_ONCE, c.reply()).await.unwrap().body["requestId"], "c-1");
}

/// Section 3: nobody could come back with a request id that a server made, whichever server it was.
#[tokio::test]
async fn a_client_without_a_request_id_leaves_the_queue_with_its_connection() {
    let [first, second, _third] = three().await;
    first.acquire("r", "a").await;
    let b = waiting(&second, &json!({"clientId": "b", "waitTimeoutMs": 600_000})).await;
    first.attached("r", 1).await;
    drop(b);
    until("the queue is empty", async || first.get("/locks/r").await.body["queueLength"] == 0).await;
}

#[tokio::test]
async fn events_come_through_any_node_and_end_with_their_client() {
    let limits =
        HttpLimits { streams_max: 1, alive_every: Duration::from_millis(200), ..HttpLimits::default() };
    let [first, second, third] = three_with(limits).await;
    let mut stream = second.connect().await;
    stream.send(&request("GET", "/events?prefix=p", &Value::Null)).await;
    let (status, headers) = stream.head().await.unwrap();
    assert_eq!((status, headers["content-type"].as_str()), (200, "text/event-stream"));
    stream.read_until("id: 0\n\n").await;
    third.acquire("p1", "a").await;
    let seen = stream.read_until("\"ttlMs\":30000").await;
    assert!(seen.contains("id: 1\nevent: granted\n"), "{seen}");
    stream.read_until(": alive").await;

    assert!(third.get("/events").await.is(503, "overloaded"));
    drop(stream);
    until("the leader has room for another stream", async || {
        let mut again = third.connect().await;
        again.send(&request("GET", "/events?after=0", &Value::Null)).await;
        again.head().await.unwrap().0 == 200
    })
    .await;
    assert!(second.get("/events?after=x").await.is(400, "invalid"));
    first.stop().await;
}

/// A call to `path` of the node `to`, as another member passes it on.
async fn passed_on(from: &Node, to: &Node, path: &str, body: &Value) -> (u16, Value) {
    let stream = from.replica.open_calls(to.replica.node_id()).await.unwrap();
    let io = TokioIo::new(stream);
    let (mut calls, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let call = http::Request::post(format!("http://leader{path}")).header(CONTENT_TYPE, "application/json");
    let call = call.body(Full::new(Bytes::from(body.to_string()))).unwrap();
    let answer = calls.send_request(call).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

/// Case C140: what was passed on once is answered where it arrived, by whoever doesn't lead too.
#[tokio::test]
async fn a_call_is_never_passed_on_twice() {
    let [first, second, third] = three().await;
    let body = json!({"clientId": "a"});
    let (status, refused) = passed_on(&second, &third, "/locks/r/acquire", &body).await;
    assert_eq!((status, &refused["code"]), (503, &json!("no_leader")), "{refused}");
    assert_eq!(refused["applied"], "no");
    let (status, granted) = passed_on(&second, &first, "/locks/r/acquire", &body).await;
    assert_eq!((status, &granted["acquired"]), (200, &json!(true)), "{granted}");
    for node in [&second, &third] {
        assert!(node.get("/metrics").await.text.contains("kunci_http_passed_on_total 0\n"));
    }
}

/// What marks a call between nodes is the connection that it came on: nothing that a client sends.
#[tokio::test]
async fn headers_of_the_way_between_nodes_mean_nothing_from_a_client() {
    let [_first, second, _third] = three().await;
    let mut client = second.connect().await;
    let body = r#"{"clientId":"a"}"#;
    client
        .send(&format!(
            "POST /locks/r/acquire HTTP/1.1\r\nhost: k\r\nkunci-request-id: mine\r\nkunci-refusal: no_leader\r\n\
             kunci-forwarded: 1\r\nconnection: keep-alive, x-hop\r\nx-hop: 1\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    let granted = client.reply().await;
    assert_eq!(granted.status, 200, "{}", granted.text);
    assert_eq!(granted.body["requestId"].as_str().unwrap().len(), 22, "{}", granted.text);
    // The connection is kept.
    assert_eq!(client.call("GET", "/locks/r", Value::Null).await.body["held"], true);
}

#[tokio::test]
async fn a_stream_of_events_ends_when_its_node_stops_leading_and_goes_on_elsewhere() {
    let [first, second, third] = three().await;
    let mut stream = second.connect().await;
    stream.send(&request("GET", "/events?after=0", &Value::Null)).await;
    stream.read_until("id: 0\n\n").await;
    third.acquire("r", "a").await;
    stream.read_until("id: 1\nevent: granted").await;
    assert_eq!(first.post("/cluster/transfer", json!({"to": 3})).await.body["leader"], 3);
    // The last chunk: the answer ends, and the connection is kept.
    stream.read_until("0\r\n\r\n").await;
    third.acquire("q", "a").await;
    let mut again = second.connect().await;
    again.send("GET /events HTTP/1.1\r\nhost: k\r\nlast-event-id: 1\r\n\r\n").await;
    let seen = again.read_until("event: granted").await;
    assert!(seen.contains("id: 2\n"), "{seen}");
}

/// Section 3: a forwarded call ends with its link, which is dead after a second of silence. And it is told to its
/// client, with a request id to come back with.
#[tokio::test]
async fn a_silent_link_ends_its_calls_at_both_ends() {
    let [first, second, third] = three().await;
    first.acquire("r", "a").await;
    let mut b = waiting(&second, &wait("b", "b-1")).await;
    first.attached("r", 1).await;
    let mut unnamed = waiting(&second, &json!({"clientId": "u", "waitTimeoutMs": 600_000})).await;
    first.attached("r", 2).await;
    let mut c = waiting(&third, &wait("c", "c-1")).await;
    first.attached("r", 3).await;

    second.wire.cut();
    let began = Instant::now();
    let ended = timeout(AT_ONCE, b.reply()).await.unwrap();
    assert!(ended.is(503, "outcome_unknown"), "{}", ended.text);
    assert_eq!((&ended.body["applied"], &ended.body["requestId"]), (&json!("unknown"), &json!("b-1")));
    let ended = timeout(AT_ONCE, unnamed.reply()).await.unwrap();
    assert!(ended.is(503, "outcome_unknown"), "{}", ended.text);
    assert_eq!(ended.body["requestId"].as_str().map(str::len), Some(22));
    first.attached("r", 1).await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    // Others' calls go on.
    assert!(timeout(Duration::from_millis(200), c.reply()).await.is_err());

    // Case C79 (b): a node that is cut off says so at once instead of holding its clients.
    until("the node knows that it is cut off", async || !second.replica.serving(Duration::ZERO).await).await;
    sleep(Duration::from_millis(400)).await;
    let mut fastest = AT_ONCE;
    for _ in 0..5 {
        let asked = Instant::now();
        let refused = second.acquire("q", "a").await;
        fastest = fastest.min(asked.elapsed());
        assert!(refused.is(503, "no_leader") || refused.is(503, "no_quorum"), "{}", refused.text);
        assert_eq!((&refused.body["applied"], &refused.body["acquired"]), (&json!("no"), &json!(false)));
        assert!(refused.headers.contains_key("retry-after") && !refused.headers.contains_key("kunci-leader"));
    }
    assert!(fastest < Duration::from_millis(200), "{fastest:?}");
    assert!(second.get("/readyz").await.status == 503 && second.get("/livez").await.status == 200);
    assert_eq!(second.get("/cluster").await.body["leader"], Value::Null);
    assert_eq!(third.acquire("q", "a").await.status, 200);
}

/// L4 as a client sees it: no answer takes longer than a second, and soon they are good ones again.
#[tokio::test]
async fn a_leader_that_is_cut_off_is_replaced_and_nobody_hangs() {
    let [first, second, third] = three().await;
    let grant = second.acquire("r", "a").await;
    let mut b = waiting(&third, &wait("b", "b-1")).await;
    first.attached("r", 1).await;

    first.wire.cut();
    let began = Instant::now();
    // What only reads is asked again at the new leader: its client notices a pause, or that the election takes long.
    let read = async {
        let read = second.get("/locks/r").await;
        assert!(read.body["holder"] == "a" || read.body["applied"] == "no", "{}", read.text);
        assert!(began.elapsed() < Duration::from_millis(1_800), "{:?}", began.elapsed());
    };
    let renew = json!({"leaseId": grant.body["leaseId"]});
    let renewing = async {
        loop {
            let asked = Instant::now();
            let reply = second.post("/locks/r/renew", renew.clone()).await;
            assert!(asked.elapsed() < Duration::from_millis(1_800), "{:?}", asked.elapsed());
            if reply.status == 200 {
                break reply;
            }
            assert_eq!(reply.status, 503, "{}", reply.text);
            assert!(began.elapsed() < AT_ONCE, "{}", reply.text);
            sleep(Duration::from_millis(50)).await;
        }
    };
    let ((), renewed) = tokio::join!(read, renewing);
    let (new, others) = (leader(&[&second, &third]).await, [&second, &third]);
    assert_eq!(renewed.headers["kunci-leader"], others[new].address.to_string());
    let ended = timeout(AT_ONCE, b.reply()).await.unwrap();
    assert!(ended.is(503, "outcome_unknown") && ended.body["requestId"] == "b-1", "{}", ended.text);
    let mut back = waiting(&second, &wait("b", "b-1")).await;
    third.attached("r", 1).await;
    third.release("r", &grant).await;
    assert_eq!(timeout(AT_ONCE, back.reply()).await.unwrap().status, 200);

    // S4: the old leader acknowledges nothing, and says so at once.
    until("the old leader knows", async || first.replica.lead() != Lead::Here).await;
    let asked = Instant::now();
    let refused = first.acquire("x", "a").await;
    assert!(refused.is(503, "no_quorum") || refused.is(503, "no_leader"), "{}", refused.text);
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
}

/// Case C134: a leader that stops in good order hands over first, and no request fails meanwhile.
#[tokio::test]
async fn a_graceful_stop_of_the_leader_fails_no_request() {
    let [first, second, third] = three().await;
    first.attached("none", 0).await;
    until("the leader has heard of the others", async || {
        let nodes = first.get("/cluster").await.body["nodes"].clone();
        nodes.as_array().unwrap().iter().all(|node| node["healthy"] == true)
    })
    .await;
    let busy = async |node: &Node, name: &str| {
        let mut connection = node.connect().await;
        let mut slowest = Duration::ZERO;
        for _ in 0..40 {
            let asked = Instant::now();
            let path = format!("/locks/{name}/acquire");
            let grant = connection.call("POST", &path, json!({"clientId": name})).await;
            assert_eq!(grant.status, 200, "{}", grant.text);
            slowest = slowest.max(asked.elapsed());
            let proof = json!({"leaseId": grant.body["leaseId"]});
            if grant.headers.contains_key("connection") {
                // A node that is about to stop sends its clients to others, one by one.
                connection = node.connect().await;
            }
            let released = connection.call("POST", &format!("/locks/{name}/release"), proof).await;
            assert_eq!(released.status, 200, "{}", released.text);
            if released.headers.contains_key("connection") {
                connection = node.connect().await;
            }
            sleep(Duration::from_millis(10)).await;
        }
        slowest
    };
    let stop = async {
        sleep(Duration::from_millis(150)).await;
        first.http.drain();
        assert!(first.get("/readyz").await.is(503, "no_leader"));
        assert_eq!(first.get("/livez").await.status, 200);
        first.replica.hand_over().await;
        // It still takes requests, and passes them on.
        assert_eq!(first.acquire("late", "l").await.status, 200);
    };
    let (a, b, c, ()) = tokio::join!(busy(&first, "a"), busy(&second, "b"), busy(&third, "c"), stop);
    for slowest in [a, b, c] {
        assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    }
    first.stop().await;
    assert_eq!(second.acquire("r", "a").await.status, 200);
}

#[tokio::test]
async fn a_stop_of_the_node_in_between_ends_its_waits_with_a_word() {
    let [first, second, _third] = three().await;
    let grant = first.acquire("r", "a").await;
    let mut b = waiting(&second, &wait("b", "b-1")).await;
    first.attached("r", 1).await;
    let mut stream = second.connect().await;
    stream.send(&request("GET", "/events", &Value::Null)).await;
    stream.read_until("after revision").await;
    second.stop.cancel();
    let ended = timeout(AT_ONCE, b.reply()).await.unwrap();
    assert!(ended.is(503, "outcome_unknown") && ended.body["requestId"] == "b-1", "{}", ended.text);
    stream.closed().await;
    timeout(AT_ONCE, second.door).await.unwrap().unwrap();
    timeout(AT_ONCE, first.attached("r", 0)).await.unwrap();
    first.release("r", &grant).await;
}

/// Case C140: every node tells the address of whoever leads, whoever that is by now.
#[tokio::test]
async fn every_node_knows_the_way_after_the_members_have_changed() {
    let [first, second, third] = three().await;
    let fourth = join(&first, HttpLimits::default()).await;
    let moved = second.post("/cluster/transfer", json!({"to": fourth.replica.node_id()})).await;
    assert_eq!((moved.status, &moved.body["leader"]), (200, &json!(4)), "{}", moved.text);
    let removed = third.post("/cluster/remove", json!({"nodeId": 1})).await;
    assert_eq!((removed.status, &removed.body["removed"]), (200, &json!(true)), "{}", removed.text);
    let again = third.post("/cluster/remove", json!({"nodeId": 1})).await;
    assert_eq!(again.body["already"], true, "{}", again.text);
    for (number, node) in [&second, &third, &fourth].into_iter().enumerate() {
        let grant = node.acquire(&format!("r{number}"), "a").await;
        assert_eq!(grant.status, 200, "{}", grant.text);
        assert_eq!(grant.headers["kunci-leader"], fourth.address.to_string());
        let cluster = node.get("/cluster").await;
        assert_eq!((&cluster.body["leader"], &cluster.body["nextNodeId"]), (&json!(4), &json!(5)));
    }
    until("the removed node says that it is none", async || {
        let refused = first.get("/locks/r0").await;
        refused.is(503, "no_leader")
    })
    .await;
    timeout(SOON, fourth.stop()).await.unwrap();
}
