//! Peers of the native door that misbehave: too much, too slow, wrong, or gone.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]

mod native_support;

use kunci_server::native::NativeLimits;
use native_support::{Node, field, until};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep, timeout};

/// Times that a test can wait for.
fn short() -> NativeLimits {
    NativeLimits {
        line_within: Duration::from_millis(400),
        idle_within: Duration::from_millis(1_200),
        write_within: Duration::from_millis(500),
        ..NativeLimits::default()
    }
}

/// Each broken line is answered; the eighth is the last.
#[tokio::test]
async fn a_peer_that_speaks_something_else_is_closed_after_eight_lines() {
    let node = Node::start().await;
    let mut client = node.connect().await;
    client.say("hello\nwho is there?\nA k x 0 #5\nQ\nQ k\nA k 30 try owner=%0A").await;
    let mut answers = Vec::new();
    for _ in 0..6 {
        answers.push(client.hear().await);
    }
    assert!(answers[0].starts_with("E ? code=invalid applied=no detail="), "{answers:?}");
    assert!(answers.iter().any(|answer| answer.starts_with("E A k code=invalid applied=no field=lease_s")));
    client.say("1\n2\n3\n4").await;
    for _ in 0..3 {
        assert!(client.hear().await.starts_with("E ? code=invalid"));
    }
    assert!(client.hear().await.starts_with("E ? code=invalid"));
    assert_eq!(client.hear_all().await, [""; 0]);
    node.stop().await;
}

/// A browser can be made to send HTTP to any port, with lines of its page's choice behind the head.
#[tokio::test]
async fn nothing_behind_the_head_of_an_http_request_is_taken() {
    let node = Node::start().await;
    for head in ["POST / HTTP/1.1", "Host: 127.0.0.1:7401"] {
        let mut client = node.connect().await;
        client.say(&format!("{head}\nContent-Length: 20\n\nA k 30 try\nP")).await;
        let answers = client.hear_all().await;
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert!(answers[0].starts_with("E ? code=invalid applied=no detail=this%20is%20the%20native"));
    }
    assert!(!node.is_held("k").await);
    node.stop().await;
}

#[tokio::test]
async fn a_line_too_long_is_refused_before_it_is_kept_and_the_next_one_is_read() {
    let node = Node::start().await;
    let mut client = node.connect().await;
    client.send(&[b'x'; 9_000]).await;
    assert!(
        client.hear().await.starts_with("E ? code=invalid applied=no detail=the%20line%20is%20too%20long")
    );
    client.send(b"\nP #1\n").await;
    assert!(client.hear().await.ends_with(" #1"));

    let mut endless = node.connect().await;
    let cut = timeout(Duration::from_secs(10), async {
        while endless.stream.write_all(&[b'x'; 4_096]).await.is_ok() {
            sleep(Duration::from_millis(1)).await;
        }
    });
    cut.await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn half_a_line_is_closed_after_its_time_however_slowly_it_goes_on() {
    let node = Node::start_with(short()).await;
    let mut client = node.connect().await;
    let began = Instant::now();
    for byte in b"A orders/42 30 60 req=1" {
        if client.stream.write_all(&[*byte]).await.is_err() {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(client.hear_all().await, [""; 0]);
    assert!(began.elapsed() < Duration::from_millis(1_900), "{:?}", began.elapsed());
    node.stop().await;
}

/// Every piece ends one line and begins another: none takes long, though there is always half of one.
#[tokio::test]
async fn lines_that_come_in_pieces_have_each_a_time_of_their_own() {
    let node = Node::start_with(short()).await;
    let mut client = node.connect().await;
    client.send(b"P").await;
    for _ in 0..15 {
        sleep(Duration::from_millis(80)).await;
        client.send(b"\nP").await;
        assert!(client.hear().await.starts_with("P P"));
    }
    node.stop().await;
}

/// Case C63: an active wait is never taken for idle.
#[tokio::test]
async fn an_idle_connection_is_closed_and_one_that_waits_is_not() {
    let node = Node::start_with(short()).await;
    let mut holder = node.connect().await;
    let held = holder.ask("A k 30 try").await;
    let mut waiting = node.connect().await;
    waiting.say("A k 30 60").await;
    let began = Instant::now();
    assert_eq!(holder.hear_all().await, [""; 0]);
    assert!(began.elapsed() > Duration::from_millis(1_000), "{:?}", began.elapsed());
    sleep(Duration::from_millis(1_000)).await;
    let mut other = node.connect().await;
    other.ask(&format!("R k {}", field(&held, "lease"))).await;
    assert!(waiting.hear().await.starts_with("A A k token="));
    node.stop().await;
}

/// A connection has so many requests under way and no more; the rest waits in the socket.
#[tokio::test]
async fn beyond_its_requests_in_flight_a_connection_isnt_read() {
    let node = Node::start_with(NativeLimits { in_flight_max: 2, ..NativeLimits::default() }).await;
    let mut holder = node.connect().await;
    let held = holder.ask("A k 30 try").await;
    let mut client = node.connect().await;
    client.say("A k 30 60 #1\nA k 30 0.5 #2\nP #3").await;
    client.hears_nothing().await;
    assert!(client.hear().await.starts_with("T A k"));
    assert!(client.hear().await.ends_with(" #3"));
    holder.ask(&format!("R k {}", field(&held, "lease"))).await;
    assert!(client.hear().await.ends_with(" #1"));
    node.stop().await;
}

/// Case C119: a client that never reads its answers is cut off, and nobody else is held up by it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_reads_is_cut_off() {
    let limits = NativeLimits { write_within: Duration::from_millis(500), ..NativeLimits::default() };
    let node = Node::start_with(limits).await;
    let mut holder = node.connect().await;
    let renew = format!("N k {}", field(&holder.ask("A k 30 try").await, "lease"));
    let mut deaf = node.connect().await;
    let lines: String =
        (0..500).map(|number| format!("Q some/key\nA deaf/{number} 60 try #{number}\n")).collect();
    let cut = async {
        // Its own writes fail once the door has given it up.
        while deaf.stream.write_all(lines.as_bytes()).await.is_ok() {
            assert!(timeout(Duration::from_secs(2), holder.ask(&renew)).await.unwrap().starts_with("N N k"));
        }
    };
    timeout(Duration::from_secs(30), cut).await.unwrap();
    assert!(holder.ask("P").await.starts_with("P P"));
    node.stop().await;
}

/// A connection too many is told so, and there is room again when one ends.
#[tokio::test]
async fn a_connection_too_many_is_refused_politely() {
    let node = Node::start_with(NativeLimits { connections_max: 2, ..NativeLimits::default() }).await;
    let (mut first, mut second) = (node.connect().await, node.connect().await);
    assert!(first.ask("P").await.starts_with("P P") && second.ask("P").await.starts_with("P P"));
    let mut third = node.connect().await;
    let refused = third.ask("P").await;
    assert!(refused.starts_with("E ? code=overloaded applied=no retry_ms=1000"), "{refused}");
    assert_eq!(third.hear_all().await, [""; 0]);
    drop(second);
    until("there is room again", async || {
        let mut again = node.connect().await;
        again.ask("P").await.starts_with("P P")
    })
    .await;
    node.stop().await;
}
