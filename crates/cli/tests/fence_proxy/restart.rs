//! What survives the proxy's end, and how it ends.

use crate::ask::{connect, put, rest, text};
use crate::process::Proxy;
use crate::upstream::Upstream;
use std::io::Write as _;
use std::time::Duration;
use tokio::time::Instant;

const TIMES: &str = "[times]\nsettle_ms = 2500\n";

/// S9 across a crash of the proxy: the gate is kept, and so is the order with what was on the way.
#[test]
fn a_proxy_that_was_killed_compares_with_what_it_has_admitted_and_waits_for_what_it_left_on_the_way() {
    let (folder, upstream) = (tempfile::tempdir().unwrap(), Upstream::start());
    let mut proxy = Proxy::start(folder.path(), upstream.address(), TIMES);
    assert_eq!(put(proxy.address(), "/x", "q", 7).status, 200);
    let mut on_the_way = connect(proxy.address());
    on_the_way.write_all(text("PUT", "/slow/2000", "r", 1, "body").as_bytes()).unwrap();
    upstream.wait_came("/slow/2000");
    proxy.kill();

    let proxy = Proxy::start(folder.path(), upstream.address(), TIMES);
    assert!(proxy.words().contains("didn't end cleanly"), "{}", proxy.words());
    assert_eq!(put(proxy.address(), "/x", "q", 6).status, 409, "the gate is kept");
    let begun = Instant::now();
    assert_eq!(put(proxy.address(), "/x", "q", 7).status, 200, "the kept token goes on at once");
    assert_eq!(put(proxy.address(), "/x", "new", 1).status, 200, "so does a new resource");
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert_eq!(put(proxy.address(), "/x", "r", 2).status, 200);
    assert_eq!(
        upstream.tokens(),
        [7, 7, 1, 1, 2],
        "the write that was on the way lands before the newer one"
    );
}

#[test]
fn a_proxy_that_is_asked_to_stop_lets_what_is_on_the_way_end_and_leaves_no_doubt() {
    let (folder, upstream) = (tempfile::tempdir().unwrap(), Upstream::start());
    let mut proxy = Proxy::start(folder.path(), upstream.address(), TIMES);
    let to = proxy.address();
    let mut on_the_way = connect(to);
    on_the_way.write_all(text("PUT", "/slow/1000", "r", 1, "body").as_bytes()).unwrap();
    upstream.wait_came("/slow/1000");
    proxy.terminate();
    let answer = String::from_utf8(rest(&mut on_the_way)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("written"), "{answer}");
    assert_eq!(proxy.ended().code(), Some(0), "{}", proxy.words());
    assert!(std::net::TcpStream::connect(to).is_err());

    let proxy = Proxy::start(folder.path(), upstream.address(), TIMES);
    let begun = Instant::now();
    assert_eq!(put(proxy.address(), "/x", "r", 2).status, 200);
    assert!(begun.elapsed() < Duration::from_millis(2_000), "nothing to wait for: {:?}", begun.elapsed());
    assert_eq!(put(proxy.address(), "/x", "r", 1).status, 409);
    assert_eq!(upstream.tokens(), [1, 2]);
}

#[test]
fn a_stop_that_can_not_wait_longer_leaves_doubt_and_a_second_signal_ends_it_at_once() {
    let (folder, upstream) = (tempfile::tempdir().unwrap(), Upstream::start());
    let more = "[times]\nsettle_ms = 300\nstop_ms_max = 200\n";
    let mut proxy = Proxy::start(folder.path(), upstream.address(), more);
    let mut on_the_way = connect(proxy.address());
    on_the_way.write_all(text("PUT", "/hang", "r", 1, "body").as_bytes()).unwrap();
    upstream.wait_came("/hang");
    proxy.terminate();
    assert_eq!(proxy.ended().code(), Some(0));
    assert!(proxy.words().contains("may still have an effect"), "{}", proxy.words());

    let mut proxy = Proxy::start(folder.path(), upstream.address(), "");
    assert!(proxy.words().contains("didn't end cleanly"), "{}", proxy.words());
    let mut on_the_way = connect(proxy.address());
    on_the_way.write_all(text("PUT", "/hang/2", "r", 1, "body").as_bytes()).unwrap();
    upstream.wait_came("/hang/2");
    proxy.terminate();
    proxy.wait_said("stopping").unwrap();
    proxy.terminate();
    assert_eq!(proxy.ended().code(), Some(128 + 15));
}

/// A gate that was lost: with a floor everybody from before stays outside.
#[test]
fn a_floor_keeps_everybody_from_before_outside() {
    let (folder, upstream) = (tempfile::tempdir().unwrap(), Upstream::start());
    let proxy = Proxy::start(folder.path(), upstream.address(), "gate_floor = 100");
    assert_eq!(put(proxy.address(), "/x", "r", 99).status, 409);
    assert_eq!(put(proxy.address(), "/x", "r", 100).status, 200);
}
