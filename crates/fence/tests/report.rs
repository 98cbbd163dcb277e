//! Reports of rejections, to nodes that answer, don't answer, or aren't there.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in its helpers too")]

use kunci_fence::gate::Rejected;
use kunci_fence::report::{Counts, WAITING_MAX, reporter};
use kunci_types::{FencingToken, ResourceName};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

fn rejected(found: u64) -> Rejected {
    let token = |number| FencingToken::presented(number).unwrap();
    Rejected {
        resource: ResourceName::parse("orders/42 \"x\"").unwrap(),
        found: token(found),
        kept: token(found + 1),
    }
}

/// The first request of a connection, as text.
async fn request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"}") {
        assert_ne!(stream.read_buf(&mut text).await.unwrap(), 0, "{}", String::from_utf8_lossy(&text));
    }
    String::from_utf8(text).unwrap()
}

/// A door that answers each request with a status and tells what it was asked.
async fn node(status: &'static str) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tell.send(request(&mut stream).await).unwrap();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (url, told)
}

#[tokio::test]
async fn a_rejection_is_told_to_the_first_node_that_takes_it() {
    let gone = "http://127.0.0.1:1".to_owned();
    let (refusing, mut asked_in_vain) = node("503 Service Unavailable").await;
    let (taking, mut asked) = node("200 OK").await;
    let (reporter, sending) = reporter(&[gone, refusing, taking]).unwrap();
    reporter.report(rejected(11));
    reporter.report(rejected(12));
    let counts = reporter.clone();
    drop(reporter);
    let sending = tokio::spawn(sending);

    let first = asked.recv().await.unwrap();
    assert!(first.starts_with("POST /fencing-rejections HTTP/1.1\r\n"), "{first}");
    let body: serde_json::Value = serde_json::from_str(first.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body, serde_json::json!({ "resource": "orders/42 \"x\"", "token": 11, "current": 12 }));
    assert!(asked.recv().await.unwrap().contains("\"token\":12"));
    assert!(asked_in_vain.recv().await.is_some());
    assert!(asked_in_vain.try_recv().is_err(), "the second report goes where the first was taken");
    while counts.counts().told < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(counts.counts(), Counts { told: 2, dropped: 0, failed: 0 });
    drop(counts);
    sending.await.unwrap();
}

#[tokio::test]
async fn what_nobody_takes_is_counted_and_holds_nobody_up() {
    let (reporter, sending) = reporter(&["http://127.0.0.1:1"]).unwrap();
    // Nothing is sent yet: whoever rejects isn't held up by that.
    for number in 1..=WAITING_MAX as u64 + 5 {
        reporter.report(rejected(number));
    }
    assert_eq!(reporter.counts(), Counts { told: 0, dropped: 5, failed: 0 });
    let counts = reporter.clone();
    drop(reporter);
    tokio::spawn(sending);
    while counts.counts().failed < WAITING_MAX as u64 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(counts.counts(), Counts { told: 0, dropped: 5, failed: WAITING_MAX as u64 });
}

#[tokio::test]
async fn a_node_that_never_answers_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let (taking, mut asked) = node("200 OK").await;
    let (reporter, sending) = reporter(&[url, taking]).unwrap();
    tokio::spawn(sending);
    reporter.report(rejected(11));
    assert!(asked.recv().await.is_some());
}
