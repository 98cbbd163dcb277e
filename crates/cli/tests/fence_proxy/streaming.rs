//! Bodies go through piece by piece, both ways.

use crate::ask::{connect, raw, rest, text};
use crate::process::Proxy;
use crate::upstream::Upstream;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

fn start() -> (tempfile::TempDir, Upstream, Proxy) {
    let (folder, upstream) = (tempfile::tempdir().unwrap(), Upstream::start());
    let proxy = Proxy::start(folder.path(), upstream.address(), "[times]\nhead_ms_max = 500\n");
    (folder, upstream, proxy)
}

fn chunked(path: &str, token: u64) -> String {
    text("PUT", path, "r", token, "").replace("Content-Length: 0", "Transfer-Encoding: chunked")
}

/// Reads until these bytes came.
fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let (mut text, mut byte) = (String::new(), [0; 1]);
    while !text.contains(wanted) {
        stream.read_exact(&mut byte).unwrap();
        text.push(char::from(byte[0]));
    }
    text
}

#[test]
fn each_piece_of_a_body_comes_back_before_the_next_one_is_sent() {
    let (_folder, _upstream, proxy) = start();
    let mut stream = connect(proxy.address());
    stream.write_all(chunked("/echo", 1).as_bytes()).unwrap();
    for number in 0..20 {
        let piece = format!("piece {number:02}");
        stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).unwrap();
        read_until(&mut stream, &piece);
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    let end = String::from_utf8(rest(&mut stream)).unwrap();
    assert!(end.ends_with("0\r\n\r\n"), "{end:?}");
}

#[test]
fn a_large_body_goes_through_whole_and_a_client_may_send_all_of_it_before_it_reads() {
    let (_folder, _upstream, proxy) = start();
    let body = "0123456789abcdef".repeat(2 << 16);
    for text in [
        text("PUT", "/echo", "r", 1, &body),
        chunked("/echo", 1) + &format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
    ] {
        let mut stream = connect(proxy.address());
        let mut writing = stream.try_clone().unwrap();
        let got = std::thread::scope(|scope| {
            scope.spawn(move || writing.write_all(text.as_bytes()).unwrap());
            rest(&mut stream)
        });
        let length = String::from_utf8_lossy(&got).matches("abcdef").count();
        // A chunk may end in the middle of one.
        assert!(length + 300 > body.len() / 16, "{length}");
        assert!(got.len() >= body.len());
    }
}

/// Half of a chunked body must not get an end mark from us: it would look like a whole one.
#[test]
fn a_body_that_breaks_off_is_no_write_upstream() {
    let (_folder, upstream, proxy) = start();
    let mut stream = connect(proxy.address());
    stream.write_all(format!("{}4\r\nhalf\r\n", chunked("/breaks", 1)).as_bytes()).unwrap();
    upstream.wait_came("/breaks");
    drop(stream);
    let mut stream = connect(proxy.address());
    let whole = text("PUT", "/breaks/2", "r", 1, "0123456789");
    stream.write_all(&whole.as_bytes()[..whole.len() - 5]).unwrap();
    upstream.wait_came("/breaks/2");
    drop(stream);
    assert_eq!(raw(proxy.address(), &text("PUT", "/x", "r", 1, "")).status, 200);
    assert_eq!(upstream.written().len(), 1, "{:?}", upstream.written());
}

#[test]
fn an_answer_before_the_end_of_the_body_reaches_the_client() {
    let (_folder, _upstream, proxy) = start();
    let mut stream = connect(proxy.address());
    stream.write_all(format!("{}4\r\nhalf\r\n", chunked("/early", 1)).as_bytes()).unwrap();
    let answer = read_until(&mut stream, "too much");
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[test]
fn the_answer_to_a_head_request_says_how_long_a_get_would_be() {
    let (_folder, _upstream, proxy) = start();
    let answer = raw(proxy.address(), "HEAD /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(answer.status == 200 && answer.head.contains("content-length: 4"), "{answer:?}");
    assert_eq!(answer.body, "");
}

#[test]
fn a_client_that_sends_no_whole_head_is_cut_off() {
    let (_folder, upstream, proxy) = start();
    for text in ["", "PUT /x HT", "PUT /x HTTP/1.1\r\nHost: h\r\n"] {
        let mut stream = connect(proxy.address());
        stream.write_all(text.as_bytes()).unwrap();
        rest(&mut stream);
    }
    let mut stream = connect(proxy.address());
    stream.write_all(text("GET", "/x", "r", 1, "").replace("Connection: close\r\n", "").as_bytes()).unwrap();
    rest(&mut stream);
    assert_eq!(upstream.came(), ["GET /x"]);
}

#[test]
fn a_rejected_write_is_not_asked_for_its_body() {
    let (_folder, _upstream, proxy) = start();
    assert_eq!(raw(proxy.address(), &text("PUT", "/x", "r", 2, "")).status, 200);
    let late = text("PUT", "/x", "r", 1, "")
        .replace("Content-Length: 0", "Content-Length: 4\r\nExpect: 100-continue");
    let answer = raw(proxy.address(), &late);
    assert_eq!(answer.status, 409, "and no 100 before it: {answer:?}");
    let mut stream = connect(proxy.address());
    let newer = text("PUT", "/x", "r", 3, "")
        .replace("Content-Length: 0", "Content-Length: 4\r\nExpect: 100-continue");
    stream.write_all(newer.as_bytes()).unwrap();
    read_until(&mut stream, "100 Continue\r\n\r\n");
    stream.write_all(b"body").unwrap();
    assert!(String::from_utf8(rest(&mut stream)).unwrap().starts_with("HTTP/1.1 200"));
}
