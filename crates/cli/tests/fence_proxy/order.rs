//! A newer write waits until the older ones have ended for certain.

use crate::ask::{connect, put, rest, text};
use crate::process::Proxy;
use crate::upstream::Upstream;
use std::io::Write as _;
use std::time::Duration;
use tokio::time::Instant;

const TIMES: &str = "[times]\nsettle_ms = 1500\nanswer_ms_max = 500\ndrain_ms_max = 10000\n";

fn start(more: &str) -> (tempfile::TempDir, Upstream, Proxy) {
    let (folder, upstream) = (tempfile::tempdir().unwrap(), Upstream::start());
    let proxy = Proxy::start(folder.path(), upstream.address(), more);
    (folder, upstream, proxy)
}

/// S9: a check alone would let the newer one by, and the older one would land last.
#[test]
fn an_older_write_that_is_on_its_way_lands_before_a_newer_one_begins() {
    let (_folder, upstream, proxy) = start("");
    let to = proxy.address();
    std::thread::scope(|scope| {
        let older = scope.spawn(|| put(to, "/slow/1000", "r", 1));
        upstream.wait_came("/slow/1000");
        let others = scope.spawn(|| put(to, "/other", "q", 1));
        assert_eq!(others.join().unwrap().status, 200, "other resources don't wait");
        assert_eq!(put(to, "/x", "r", 2).status, 200);
        assert_eq!(older.join().unwrap().status, 200, "it isn't cut off");
    });
    assert_eq!(
        upstream.written().iter().map(|written| written.path.as_str()).collect::<Vec<_>>(),
        ["/other", "/slow/1000", "/x"]
    );
}

/// A client that is gone can't call its write back.
#[test]
fn an_older_write_whose_client_has_gone_is_waited_for_all_the_same() {
    let (_folder, upstream, proxy) = start("");
    let mut older = connect(proxy.address());
    older.write_all(text("PUT", "/slow/1000", "r", 1, "body").as_bytes()).unwrap();
    upstream.wait_came("/slow/1000");
    drop(older);
    let begun = Instant::now();
    assert_eq!(put(proxy.address(), "/x", "r", 2).status, 200);
    assert!(begun.elapsed() < Duration::from_secs(20), "no settle time, since the upstream has answered");
    assert_eq!(upstream.tokens(), [1, 2]);
}

/// The upstream may still do what it never answered: for the settle time it is believed to.
#[test]
fn after_an_older_write_that_never_is_answered_a_newer_one_waits_for_the_settle_time() {
    let (_folder, upstream, proxy) = start(TIMES);
    let to = proxy.address();
    std::thread::scope(|scope| {
        let older = scope.spawn(|| put(to, "/slow/1400", "r", 1));
        upstream.wait_came("/slow/1400");
        let begun = Instant::now();
        assert_eq!(put(to, "/x", "r", 2).status, 200);
        assert!(begun.elapsed() >= Duration::from_millis(1_500), "{:?}", begun.elapsed());
        let older = older.join().unwrap();
        assert_eq!(older.refusal(), (504, "upstream_timeout".to_owned()));
        assert_eq!(older.problem()["applied"], "unknown");
    });
    assert_eq!(
        upstream.tokens(),
        [1, 2],
        "it landed after its answer was given up, and before the newer one"
    );
}

#[test]
fn a_newer_write_that_would_wait_too_long_is_told_when_to_come_again() {
    let (_folder, upstream, proxy) = start(&TIMES.replace("10000", "100"));
    let to = proxy.address();
    assert_eq!(put(to, "/hang", "r", 1).status, 504);
    let put_off = put(to, "/x", "r", 2);
    assert_eq!(put_off.refusal(), (503, "undrained".to_owned()));
    assert!(put_off.head.contains("retry-after: "), "{put_off:?}");
    assert_eq!(
        (put_off.problem()["older"].as_u64(), put_off.problem()["applied"].as_str()),
        (Some(1), Some("no"))
    );
    assert_eq!(put(to, "/x", "r", 1).status, 409, "what was put off has moved the resource up");
    std::thread::sleep(Duration::from_millis(put_off.problem()["retryAfterMs"].as_u64().unwrap()));
    assert_eq!(put(to, "/x", "r", 2).status, 200);
    assert_eq!(upstream.tokens(), [1, 2]);
}

/// The holder that was stopped in the middle of sending: it doesn't hold up its successor for longer than a stall and the
/// settle time, and what it sent by then is no write.
#[test]
fn an_older_write_that_stalls_in_the_middle_is_cut_off_when_a_newer_one_waits() {
    let (_folder, upstream, proxy) = start(TIMES);
    let mut older = connect(proxy.address());
    let whole = text("PUT", "/stalls", "r", 1, "0123456789");
    older.write_all(&whole.as_bytes()[..whole.len() - 5]).unwrap();
    upstream.wait_came("/stalls");
    let begun = Instant::now();
    assert_eq!(put(proxy.address(), "/x", "r", 2).status, 200);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    // It wakes up.
    drop(older.write_all(b"56789"));
    let answer = String::from_utf8_lossy(&rest(&mut older)).into_owned();
    assert!(answer.is_empty() || answer.contains("408"), "{answer}");
    assert_eq!(upstream.tokens(), [2]);
}

/// A client that doesn't read its response doesn't hold up anybody either: the rest is read and thrown away.
#[test]
fn an_older_write_whose_client_does_not_read_has_ended_when_the_upstream_is_through() {
    let (_folder, upstream, proxy) = start("");
    let mut older = connect(proxy.address());
    older.write_all(text("PUT", "/long", "r", 1, "body").as_bytes()).unwrap();
    upstream.wait_came("/long");
    let begun = Instant::now();
    assert_eq!(put(proxy.address(), "/x", "r", 2).status, 200);
    assert!(begun.elapsed() < Duration::from_secs(20), "without the settle time: {:?}", begun.elapsed());
    assert_eq!(upstream.tokens(), [1, 2]);
    assert!(rest(&mut older).len() < 8 << 20, "it was cut off");
}

/// Clients that send and go away would otherwise fill the upstream without end.
#[test]
fn the_upstream_has_no_more_requests_than_the_limit_says() {
    let (_folder, upstream, proxy) = start("[limits]\nrequests_max = 3\n");
    for number in 0..3 {
        let mut gone = connect(proxy.address());
        let text = text("PUT", &format!("/slow/1500/{number}"), &format!("r/{number}"), 1, "body");
        gone.write_all(text.as_bytes()).unwrap();
        upstream.wait_came(&format!("/slow/1500/{number}"));
    }
    let refused = put(proxy.address(), "/x", "q", 1);
    assert_eq!(refused.refusal(), (503, "overloaded".to_owned()));
    std::thread::sleep(Duration::from_millis(2_000));
    assert_eq!(put(proxy.address(), "/x", "q", 2).status, 200, "the refused one isn't waited for");
    assert_eq!(upstream.written().len(), 4);
}

/// Many holders one after the other, each with writes that are slow: they land in the order of their tokens.
#[test]
fn under_load_the_tokens_that_land_never_sink() {
    let (_folder, upstream, proxy) = start("");
    let to = proxy.address();
    std::thread::scope(|scope| {
        for token in 1..=60_u64 {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(token * 7919 % 1_000));
                put(to, &format!("/slow/{}", token * 31 % 60), "r", token / 4 + 1)
            });
        }
    });
    let tokens = upstream.tokens();
    assert!(tokens.is_sorted() && tokens.len() > 1, "{tokens:?}");
}
