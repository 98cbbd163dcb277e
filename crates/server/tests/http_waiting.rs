//! Calls that wait: held open, answered later, taken up again, and left behind by clients that go away.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]

mod http_support;

use http_support::{Node, SOON, request, until};
use kunci_server::http::HttpLimits;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Nothing that happens at once takes this long.
const AT_ONCE: Duration = Duration::from_secs(3);

fn wait(owner: &str, request_id: &str) -> Value {
    json!({"clientId": owner, "requestId": request_id, "waitTimeoutMs": 600_000})
}

/// A grace that a test can wait for.
async fn short_grace(node: &Node, ms: u64) {
    let replaces = node.get("/policy").await.body["policyRevision"].clone();
    let change = json!({"replaces": replaces, "policy": {"waiterGraceMs": ms}});
    assert_eq!(node.call("PUT", "/policy", change).await.status, 200);
}

#[tokio::test]
async fn a_release_hands_over_to_the_call_that_waits() {
    let node = Node::start().await;
    let first = node.acquire("r", "a").await;
    let mut b = node.connect().await;
    b.send(&request("POST", "/locks/r/acquire", &wait("b", "b-1"))).await;
    node.attached("r", 1).await;
    let queue = node.get("/locks/r/queue").await;
    let waiter = &queue.body["waiters"][0];
    assert_eq!((&waiter["owner"], &waiter["position"]), (&json!("b"), &json!(1)));
    assert!(waiter["waitedMs"].is_u64() && waiter["waitRemainingMs"].as_u64().unwrap() > 500_000);
    assert!(!queue.text.contains("b-1"), "a request id shows: {}", queue.text);
    assert_eq!(node.get("/hot").await.body["locks"][0]["queueLength"], 1);

    node.release("r", &first).await;
    let granted = timeout(AT_ONCE, b.reply()).await.unwrap();
    assert_eq!((granted.status, &granted.body["requestId"]), (200, &json!("b-1")), "{}", granted.text);
    assert!(granted.body["fencingToken"].as_u64() > first.body["fencingToken"].as_u64());
    node.stop().await;
}

/// Case C98: what waits longer than a call may stay open is told so, and takes up its place again.
#[tokio::test]
async fn a_call_is_held_open_for_its_time_and_the_next_one_takes_up_the_same_place() {
    let limits = HttpLimits { hold: Duration::from_millis(300), ..HttpLimits::default() };
    let node = Node::start_with(limits).await;
    let first = node.acquire("r", "a").await;
    let began = Instant::now();
    let queued = node.post("/locks/r/acquire", wait("b", "b-1")).await;
    assert_eq!(queued.status, 202, "{}", queued.text);
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!((&queued.body["acquired"], &queued.body["queued"]), (&json!(false), &json!(true)));
    assert_eq!((&queued.body["position"], &queued.body["requestId"]), (&json!(1), &json!("b-1")));
    assert!(queued.body["revision"].is_u64());
    node.attached("r", 0).await;
    // A second one comes in behind; the place is kept.
    let behind = node.post("/locks/r/acquire", wait("c", "c-1")).await;
    assert_eq!(behind.body["position"], 2);
    let mut back = node.connect().await;
    back.send(&request("POST", "/locks/r/acquire", &wait("b", "b-1"))).await;
    node.attached("r", 1).await;
    node.release("r", &first).await;
    let granted = back.reply().await;
    assert_eq!(granted.status, 200, "{}", granted.text);
    let repeated = node.post("/locks/r/acquire", wait("b", "b-1")).await;
    assert_eq!((repeated.status, &repeated.body["repeated"]), (200, &json!(true)));
    assert_eq!(repeated.body["leaseId"], granted.body["leaseId"]);
    node.stop().await;
}

/// Case C54 (a), L3: a waiter whose client closed is passed over at once, and dropped after the grace.
#[tokio::test]
async fn a_client_that_goes_away_is_passed_over_and_then_dropped() {
    let node = Node::start().await;
    short_grace(&node, 1_500).await;
    let first = node.acquire("r", "a").await;
    let mut b = node.connect().await;
    b.send(&request("POST", "/locks/r/acquire", &wait("b", "b-1"))).await;
    node.attached("r", 1).await;
    let mut c = node.connect().await;
    c.send(&request("POST", "/locks/r/acquire", &wait("c", "c-1"))).await;
    node.attached("r", 2).await;
    drop(b);
    node.attached("r", 1).await;
    node.release("r", &first).await;
    let granted = timeout(AT_ONCE, c.reply()).await.unwrap();
    assert_eq!(granted.status, 200, "{}", granted.text);
    until("the absent waiter is dropped", async || node.get("/locks/r").await.body["queueLength"] == 0).await;
    let late = node.post("/locks/r/acquire", wait("b", "b-1")).await;
    assert!(late.is(409, "cancelled") && late.body["repeated"] == true, "{}", late.text);
    node.stop().await;
}

/// Case C54 (c): unread pipelined requests don't hide that the client is gone.
#[tokio::test]
async fn pipelined_requests_dont_hide_that_their_client_is_gone() {
    let node = Node::start().await;
    let first = node.acquire("r", "a").await;
    let mut b = node.connect().await;
    let mut pipelined = request("POST", "/locks/r/acquire", &wait("b", "b-1"));
    let next = request("GET", "/locks/r", &Value::Null);
    while pipelined.len() < 64 << 10 {
        pipelined.push_str(&next);
    }
    b.send(&pipelined).await;
    node.attached("r", 1).await;
    let mut c = node.connect().await;
    c.send(&request("POST", "/locks/r/acquire", &wait("c", "c-1"))).await;
    node.attached("r", 2).await;
    drop(b);
    timeout(AT_ONCE, node.attached("r", 1)).await.unwrap();
    node.release("r", &first).await;
    let granted = timeout(AT_ONCE, c.reply()).await.unwrap();
    assert_eq!(granted.status, 200, "{}", granted.text);
    node.stop().await;
}

/// Section 3: a waiter whose request id the server made leaves at once, since nobody could come back with it.
#[tokio::test]
async fn a_client_without_a_request_id_leaves_the_queue_with_its_connection() {
    let node = Node::start().await;
    node.acquire("r", "a").await;
    let mut b = node.connect().await;
    let body = json!({"clientId": "b", "waitTimeoutMs": 600_000});
    b.send(&request("POST", "/locks/r/acquire", &body)).await;
    node.attached("r", 1).await;
    drop(b);
    until("the queue is empty", async || node.get("/locks/r").await.body["queueLength"] == 0).await;
    node.stop().await;
}

/// The newest connection gets the answer.
#[tokio::test]
async fn a_second_call_of_a_request_takes_its_place_and_ends_the_first() {
    let node = Node::start().await;
    let first = node.acquire("r", "a").await;
    let (mut older, mut newer) = (node.connect().await, node.connect().await);
    older.send(&request("POST", "/locks/r/acquire", &wait("b", "b-1"))).await;
    node.attached("r", 1).await;
    newer.send(&request("POST", "/locks/r/acquire", &wait("b", "b-1"))).await;
    let superseded = timeout(AT_ONCE, older.reply()).await.unwrap();
    assert!(superseded.is(409, "superseded"), "{}", superseded.text);
    assert_eq!(superseded.body["applied"], "unknown");
    assert!(superseded.body.get("acquired").is_none());
    node.release("r", &first).await;
    assert_eq!(newer.reply().await.status, 200);

    let reused = json!({"clientId": "b", "requestId": "b-1", "leaseDurationMs": 5_000});
    assert!(node.post("/locks/r/acquire", reused).await.is(409, "request_id_reused"));
    node.stop().await;
}

/// Case C63: a cancel from another connection ends the wait at once.
#[tokio::test]
async fn a_cancel_ends_the_call_that_waits() {
    let node = Node::start().await;
    let held = node.acquire("r", "a").await;
    let mut b = node.connect().await;
    b.send(&request("POST", "/locks/r/acquire", &wait("b", "b-1"))).await;
    node.attached("r", 1).await;
    let cancel = json!({"clientId": "b", "requestId": "b-1"});
    let cancelled = node.post("/locks/r/cancel", cancel.clone()).await;
    assert_eq!((cancelled.status, &cancelled.body["cancelled"]), (200, &json!(true)), "{}", cancelled.text);
    let ended = timeout(Duration::from_secs(1), b.reply()).await.unwrap();
    assert!(ended.is(409, "cancelled"), "{}", ended.text);
    assert_eq!(node.post("/locks/r/cancel", cancel).await.body["repeated"], true);
    node.release("r", &held).await;
    assert_eq!(node.get("/locks/r").await.body["held"], false);

    // The grant came first: the cancel hands it over.
    let body = json!({"clientId": "c", "requestId": "c-1"});
    let granted = node.post("/locks/r/acquire", body.clone()).await;
    let cancelled = node.post("/locks/r/cancel", body).await;
    assert_eq!((cancelled.status, &cancelled.body["acquired"]), (200, &json!(true)), "{}", cancelled.text);
    assert_eq!(cancelled.body["leaseId"], granted.body["leaseId"]);
    node.stop().await;
}

#[tokio::test]
async fn a_wait_that_is_over_is_refused_and_stays_refused() {
    let node = Node::start().await;
    let held = node.acquire("r", "a").await;
    let body = json!({"clientId": "b", "requestId": "b-1", "waitTimeoutMs": 200});
    let over = node.post("/locks/r/acquire", body.clone()).await;
    assert!(over.is(409, "timed_out") && over.body["acquired"] == false, "{}", over.text);
    assert!(over.body.get("repeated").is_none());
    node.release("r", &held).await;
    let again = node.post("/locks/r/acquire", body).await;
    assert!(again.is(409, "timed_out") && again.body["repeated"] == true, "{}", again.text);
    node.stop().await;
}

/// Section 3: a grant that no connection was given is abandoned after the waiter grace.
#[tokio::test]
async fn a_grant_that_reached_nobody_is_given_to_the_next() {
    let node = Node::start().await;
    short_grace(&node, 300).await;
    // The answer to the first request can't be written: its connection is closed right after it was sent, so either
    // it was served in time and then the lease is known to nobody, or it wasn't proposed at all.
    for number in 0..20 {
        let mut gone = node.connect().await;
        let body = json!({"clientId": "g", "requestId": format!("g-{number}"), "leaseDurationMs": 2_000});
        gone.send(&request("POST", &format!("/locks/r{number}/acquire"), &body)).await;
        drop(gone);
    }
    for number in 0..20 {
        let mut next = node.connect().await;
        let path = format!("/locks/r{number}/acquire");
        next.send(&request("POST", &path, &wait("n", &format!("n-{number}")))).await;
        assert_eq!(timeout(SOON, next.reply()).await.unwrap().status, 200);
    }
    node.stop().await;
}

#[tokio::test]
async fn a_stop_ends_waiting_calls_and_streams_with_a_word() {
    let node = Node::start().await;
    node.acquire("r", "a").await;
    let mut b = node.connect().await;
    b.send(&request("POST", "/locks/r/acquire", &wait("b", "b-1"))).await;
    node.attached("r", 1).await;
    let mut stream = node.connect().await;
    stream.send(&request("GET", "/events", &Value::Null)).await;
    stream.read_until("after revision").await;
    let idle = node.connect().await;
    sleep(Duration::from_millis(50)).await;

    node.stop.cancel();
    let ended = timeout(AT_ONCE, b.reply()).await.unwrap();
    assert!(ended.is(503, "outcome_unknown"), "{}", ended.text);
    assert_eq!((&ended.body["applied"], &ended.body["requestId"]), (&json!("unknown"), &json!("b-1")));
    assert!(ended.headers.contains_key("retry-after"));
    stream.closed().await;
    timeout(AT_ONCE, node.door).await.unwrap().unwrap();
    drop(idle);
    node.replica.stop().await;
}

#[tokio::test]
async fn events_go_on_where_a_reader_stopped() {
    let limits = HttpLimits { alive_every: Duration::from_millis(200), ..HttpLimits::default() };
    let node = Node::start_with(limits).await;
    let mut stream = node.connect().await;
    stream.send(&request("GET", "/events?prefix=p", &Value::Null)).await;
    let (status, headers) = stream.head().await.unwrap();
    assert_eq!((status, headers["content-type"].as_str()), (200, "text/event-stream"));
    assert!(headers.contains_key("kunci-position") && headers.contains_key("kunci-cluster"));
    stream.read_until("id: 0\n\n").await;

    let p = node.acquire("p1", "a").await;
    let seen = stream.read_until("\n\n").await;
    assert!(seen.contains("id: 1\nevent: granted\ndata: {\"revision\":1,"), "{seen}");
    assert!(
        seen.contains("\"resource\":\"p1\",\"owner\":\"a\",\"fencingToken\":1,\"ttlMs\":30000"),
        "{seen}"
    );
    let lease_id = p.body["leaseId"].as_str().unwrap();
    assert!(!seen.contains(lease_id), "a lease id shows: {seen}");
    // What the reader doesn't want only moves its place on.
    node.acquire("q", "a").await;
    let seen = stream.read_until("id: 2\n\n").await;
    assert!(!seen.contains("event:"), "{seen}");
    drop(stream);

    node.release("p1", &p).await;
    for (path, header) in [("/events?after=1", ""), ("/events?after=0", "last-event-id: 1\r\n")] {
        let mut again = node.connect().await;
        again.send(&format!("GET {path} HTTP/1.1\r\nhost: k\r\n{header}\r\n")).await;
        let seen = again.read_until("event: released").await;
        assert!(!seen.contains("id: 1\n") || seen.contains("id: 1\n\n"), "{seen}");
        assert!(seen.contains("id: 2\nevent: granted"), "{seen}");
    }
    for bad in ["/events?after=-1", "/events?after=9007199254740992", "/events?since=1"] {
        assert!(node.get(bad).await.is(400, "invalid"), "{bad}");
    }
    node.stop().await;
}

#[tokio::test]
async fn events_that_are_no_longer_kept_are_gone_in_plain_words() {
    let node = Node::start().await;
    let grant = node.acquire("r", "a").await;
    node.release("r", &grant).await;
    let node = node.restart_from_snapshot().await;
    let gone = node.get("/events?after=0").await;
    assert!(gone.is(410, "compacted"), "{}", gone.text);
    let oldest = gone.body["oldest"].as_u64().unwrap();
    assert_eq!(oldest, node.get("/locks").await.body["revision"].as_u64().unwrap());
    let mut stream = node.connect().await;
    stream.send(&request("GET", &format!("/events?after={oldest}"), &Value::Null)).await;
    stream.read_until("after revision").await;
    node.stop().await;
}
