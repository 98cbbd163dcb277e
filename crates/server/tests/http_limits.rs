//! Peers that misbehave: too much, too slow, or gone.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]

mod http_support;

use http_support::{Node, request, until};
use kunci_server::http::HttpLimits;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Times that a test can wait for.
fn short() -> HttpLimits {
    HttpLimits {
        head_within: Duration::from_millis(400),
        body_within: Duration::from_millis(400),
        idle_within: Duration::from_millis(1_200),
        write_within: Duration::from_millis(500),
        ..HttpLimits::default()
    }
}

const HEAD: &str = "POST /locks/r/acquire HTTP/1.1\r\nhost: k\r\ncontent-type: application/json\r\n";

#[tokio::test]
async fn half_a_head_is_closed_after_its_time_however_slowly_it_goes_on() {
    let node = Node::start_with(short()).await;
    let mut silent = node.connect().await;
    let mut half = node.connect().await;
    half.send("POST /locks/r/acq").await;
    let began = Instant::now();
    silent.closed().await;
    half.closed().await;
    assert!(began.elapsed() < Duration::from_millis(1_100), "{:?}", began.elapsed());

    // A byte now and then doesn't prolong it, also not for the second request of a connection.
    let mut slow = node.connect().await;
    assert_eq!(slow.call("GET", "/livez", Value::Null).await.status, 200);
    let began = Instant::now();
    let mut head = HEAD.bytes();
    let closed = loop {
        let byte = char::from(head.next().unwrap()).to_string();
        if tokio::io::AsyncWriteExt::write_all(&mut slow.stream, byte.as_bytes()).await.is_err() {
            break began.elapsed();
        }
        sleep(Duration::from_millis(50)).await;
    };
    assert!(closed < Duration::from_millis(1_100), "{closed:?}");
    node.stop().await;
}

/// Case C101: a body that comes a byte at a time holds nothing.
#[tokio::test]
async fn a_slow_body_is_refused_in_its_time() {
    let node = Node::start_with(short()).await;
    let mut slow = node.connect().await;
    slow.send(&format!("{HEAD}content-length: 100\r\n\r\n{{\"cl")).await;
    let refused = slow.reply().await;
    assert!(refused.is(408, "too_slow"), "{}", refused.text);
    slow.closed().await;
    assert_eq!(node.get("/locks/r").await.body["held"], false);
    node.stop().await;
}

#[tokio::test]
async fn an_idle_connection_is_kept_longer_than_half_a_head_and_then_closed() {
    let node = Node::start_with(short()).await;
    let mut connection = node.connect().await;
    for _ in 0..2 {
        assert_eq!(connection.call("GET", "/livez", Value::Null).await.status, 200);
        sleep(Duration::from_millis(700)).await;
    }
    assert_eq!(connection.call("GET", "/livez", Value::Null).await.status, 200);
    let began = Instant::now();
    connection.closed().await;
    assert!(began.elapsed() > Duration::from_millis(1_000), "{:?}", began.elapsed());
    node.stop().await;
}

/// Case C63: an active wait is never taken for idle.
#[tokio::test]
async fn a_call_that_waits_isnt_idle() {
    let node = Node::start_with(short()).await;
    let held = node.acquire("r", "a").await;
    let mut waiting = node.connect().await;
    let body = json!({"clientId": "b", "waitTimeoutMs": 60_000});
    waiting.send(&request("POST", "/locks/r/acquire", &body)).await;
    sleep(Duration::from_millis(2_000)).await;
    node.release("r", &held).await;
    assert_eq!(waiting.reply().await.status, 200);
    node.stop().await;
}

/// Case C101: a body over its limit is refused before it is read.
#[tokio::test]
async fn what_is_too_large_is_refused() {
    let node = Node::start().await;
    let mut declared = node.connect().await;
    declared.send(&format!("{HEAD}content-length: 2097152\r\n\r\n")).await;
    let refused = declared.reply().await;
    assert!(refused.is(413, "too_large"), "{}", refused.text);

    let mut chunked = node.connect().await;
    chunked
        .send(&format!(
            "{HEAD}transfer-encoding: chunked\r\n\r\n10001\r\n{}\r\n0\r\n\r\n",
            "x".repeat(65_537)
        ))
        .await;
    assert!(chunked.reply().await.is(413, "too_large"));

    // Many leases have a larger limit of their own.
    let lease = json!({"resource": "r".repeat(200), "leaseId": "A".repeat(22)});
    let many = node.post("/leases/renew", json!({"leases": vec![lease.clone(); 3_000]})).await;
    assert_eq!(many.status, 200, "{}", many.text);
    let lease = json!({"resource": "r", "leaseId": "A".repeat(22)});
    let many = node.post("/leases/renew", json!({"leases": vec![lease; 10_001]})).await;
    assert!(many.is(413, "too_large"), "{}", many.text);

    let mut long = node.connect().await;
    long.send(&format!("GET /livez HTTP/1.1\r\nhost: k\r\nx: {}\r\n\r\n", "x".repeat(20_000))).await;
    assert_eq!(long.reply().await.status, 431);
    let mut many = node.connect().await;
    many.send(&format!("GET /livez HTTP/1.1\r\nhost: k\r\n{}\r\n", "x: y\r\n".repeat(100))).await;
    assert_eq!(many.reply().await.status, 431);
    node.stop().await;
}

/// A connection too many is told so, and there is room again when one ends.
#[tokio::test]
async fn a_connection_too_many_is_refused_politely() {
    let node = Node::start_with(HttpLimits { connections_max: 2, ..HttpLimits::default() }).await;
    let mut first = node.connect().await;
    let mut second = node.connect().await;
    assert_eq!(first.call("GET", "/livez", Value::Null).await.status, 200);
    assert_eq!(second.call("GET", "/livez", Value::Null).await.status, 200);
    let mut third = node.connect().await;
    let refused = third.call("GET", "/livez", Value::Null).await;
    assert!(refused.is(503, "overloaded"), "{}", refused.text);
    assert!(refused.headers.contains_key("retry-after") && refused.headers.contains_key("kunci-cluster"));
    assert_eq!(first.call("GET", "/livez", Value::Null).await.status, 200);
    drop(second);
    until("there is room again", async || {
        let mut connection = node.connect().await;
        connection.call("GET", "/livez", Value::Null).await.status == 200
    })
    .await;
    node.stop().await;
}

/// Case C119: a client that never reads its answers is cut off; its requests aren't piled up.
#[tokio::test]
async fn a_client_that_never_reads_is_cut_off() {
    let node = Node::start_with(short()).await;
    let mut deaf = node.connect().await;
    let requests = request("GET", "/openapi.json", &Value::Null).repeat(100);
    let cut = timeout(Duration::from_secs(20), async {
        // Its own writes fail once the server has given it up.
        while tokio::io::AsyncWriteExt::write_all(&mut deaf.stream, requests.as_bytes()).await.is_ok() {}
    });
    cut.await.unwrap();
    assert_eq!(node.get("/livez").await.status, 200);
    node.stop().await;
}

#[tokio::test]
async fn streams_of_events_are_bounded() {
    let node = Node::start_with(HttpLimits { streams_max: 1, ..HttpLimits::default() }).await;
    let mut first = node.connect().await;
    first.send(&request("GET", "/events", &Value::Null)).await;
    first.read_until("after revision").await;
    assert!(node.get("/events").await.is(503, "overloaded"));
    drop(first);
    until("there is room again", async || {
        let mut again = node.connect().await;
        again.send(&request("GET", "/events", &Value::Null)).await;
        again.head().await.unwrap().0 == 200
    })
    .await;
    node.stop().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let node = Node::start().await;
    let mut connection = node.connect().await;
    let names = ["a", "b", "c", "d"];
    let all: String =
        names.iter().map(|name| request("GET", &format!("/locks/{name}"), &Value::Null)).collect();
    connection.send(&all).await;
    for name in names {
        assert_eq!(connection.reply().await.body["resource"], name);
    }
    node.stop().await;
}
