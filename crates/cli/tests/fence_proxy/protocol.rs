//! What a request has to look like, and what its refusal looks like.

use crate::ask::{Answer, get, put, raw, text};
use crate::process::Proxy;
use crate::upstream::Upstream;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

fn start(more: &str) -> (tempfile::TempDir, Upstream, Proxy) {
    let (folder, upstream) = (tempfile::tempdir().unwrap(), Upstream::start());
    let proxy = Proxy::start(folder.path(), upstream.address(), more);
    (folder, upstream, proxy)
}

/// S9, C03.
#[test]
fn equal_and_newer_tokens_pass_and_an_older_one_gets_both_numbers_and_a_line_in_the_log() {
    let (_folder, upstream, proxy) = start("");
    let to = proxy.address();
    for (token, status) in [(7, 200), (7, 200), (9, 200), (8, 409), (9, 200)] {
        assert_eq!(put(to, "/orders/42", "orders/42", token).status, status, "token {token}");
    }
    assert_eq!(put(to, "/orders/43", "orders/43", 1).status, 200, "another resource");
    assert_eq!(upstream.tokens(), [7, 7, 9, 9, 1]);

    let late = put(to, "/orders/42", "orders%2F42", 8);
    let problem = late.problem();
    let fields = ["status", "code", "applied", "resource", "token", "current", "type"]
        .map(|field| problem[field].clone());
    let expected = json!([409, "token_rejected", "no", "orders/42", 8, 9, "urn:kunci:error:token_rejected"]);
    assert_eq!(json!(fields), expected);
    let line = proxy.wait_said("a late write was rejected").unwrap();
    assert!(line.contains("resource=orders/42 token=8 current=9"), "{line}");

    let metrics = get(proxy.admin(), "/metrics").body;
    for line in [
        "kunci_fence_requests_total{outcome=\"fenced\"} 5",
        "kunci_fence_requests_total{outcome=\"rejected\"} 2",
        "kunci_fence_resources 2",
        "kunci_fence_gate_up 1",
        "kunci_fence_on_the_way 0",
    ] {
        assert!(metrics.contains(line), "{line} isn't in\n{metrics}");
    }
    assert_eq!((get(proxy.admin(), "/livez").status, get(proxy.admin(), "/readyz").status), (200, 200));
}

#[test]
fn reads_need_no_token_and_every_other_method_does() {
    let (_folder, upstream, proxy) = start("");
    let to = proxy.address();
    assert_eq!(get(to, "/x").body, "read");
    for method in ["POST", "PUT", "PATCH", "DELETE", "PROPPATCH", "get"] {
        let missing = raw(to, &format!("{method} /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
        assert_eq!(missing.refusal(), (428, "token_required".to_owned()), "{method}");
    }
    for token in ["0", "-1", "01", "1.5", "9007199254740992", "18446744073709551617", "1, 2", "0x7", ""] {
        let text = text("PUT", "/x", "r", 1, "").replace("Token: 1", &format!("Token: {token}"));
        assert_eq!(raw(to, &text).refusal(), (400, "invalid".to_owned()), "{token:?}");
    }
    let twice = text("PUT", "/x", "r", 1, "").replace("Token: 1", "Token: 1\r\nX-Kunci-Token: 2");
    assert_eq!(raw(to, &twice).status, 400);
    assert_eq!(put(to, "/x", "r", 9_007_199_254_740_991).status, 200, "the largest token");
    assert_eq!(upstream.came(), ["GET /x", "PUT /x"]);
}

#[test]
fn rules_say_what_is_open_and_which_resource_a_path_belongs_to() {
    let (_folder, upstream, proxy) = start(
        "[[rule]]\npath = '/login'\nmethods = ['POST']\naction = 'open'\n\
         [[rule]]\npath = '/orders/{id}'\nresource = 'orders/{id}'\n\
         [[rule]]\npath = '/{rest...}'\naction = 'refuse'\n",
    );
    let to = proxy.address();
    assert_eq!(
        raw(to, "POST /login HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").status,
        200
    );
    assert_eq!(put(to, "/orders/42", "orders/42", 1).status, 200);
    let other = put(to, "/orders/42", "orders/43", 1);
    assert_eq!(other.refusal(), (400, "other_resource".to_owned()));
    assert_eq!(put(to, "/elsewhere", "r", 1).refusal(), (403, "forbidden".to_owned()));
    for path in ["/login/../orders/42", "//login", "/login/%2e%2e/orders/42", "/orders%2F42"] {
        assert_eq!(put(to, path, "orders/1", 1).refusal(), (400, "odd_path".to_owned()), "{path}");
    }
    assert_eq!(upstream.came(), ["POST /login", "PUT /orders/42"]);
}

/// Whatever two parsers could read differently is refused, or rebuilt so that there is one reading.
#[test]
fn a_second_request_can_not_be_smuggled_past_the_gate() {
    let (_folder, upstream, proxy) = start("");
    let to = proxy.address();
    put(to, "/x", "r", 5);
    let head = "PUT /x HTTP/1.1\r\nHost: h\r\nX-Kunci-Resource: r\r\nX-Kunci-Token: 5\r\n";
    let hidden = "PUT /hidden HTTP/1.1\r\nHost: h\r\nX-Kunci-Resource: r\r\nX-Kunci-Token: 1\r\n\r\n";
    let length = hidden.len();
    let odd = [
        format!("{head}Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{head}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{head}Content-Length: 0\r\nContent-Length: {length}\r\n\r\n{hidden}"),
        format!("{head}Content-Length: 0, {length}\r\n\r\n{hidden}"),
        format!("{head}Content-Length: +{length}\r\n\r\n{hidden}"),
        format!("{head}Transfer-Encoding: xchunked\r\n\r\n{hidden}"),
        format!("{head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{head}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{head}X: y\r\n folded: z\r\nContent-Length: {length}\r\n\r\n{hidden}"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{hidden}"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n-1\r\n{hidden}"),
        format!("{head}Connection: content-length\r\nContent-Length: {length}\r\n\r\n{hidden}"),
        format!("{head}Expect: 100-continue\r\nContent-Length: {length}\r\n\r\n{hidden}"),
        format!("GET /x HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{hidden}"),
        format!("{head}Bad Name: x\r\n\r\n{hidden}"),
        format!(
            "PUT /x HTTP/1.0\r\nHost: h\r\nX-Kunci-Resource: r\r\nX-Kunci-Token: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
        ),
    ];
    for text in odd {
        // A hidden one that is read as a request of its own has an old token.
        let mut stream = crate::ask::connect(to);
        drop(stream.write_all(text.as_bytes()));
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        drop(crate::ask::rest(&mut stream));
    }
    let came = upstream.came();
    assert!(!came.iter().any(|came| came.contains("hidden")), "{came:?}");
    let written = upstream.written();
    let is_whole = |body: &str| body.is_empty() || body == "body" || body == hidden;
    assert!(written.iter().all(|written| written.token == 5 && is_whole(&written.body)), "{written:?}");
}

#[test]
fn what_can_not_be_passed_on_is_refused_with_words() {
    let (_folder, upstream, proxy) = start("[limits]\nhead_bytes_max = 8192\nbody_bytes_max = 10\n");
    let to = proxy.address();
    let with = |more: &str| raw(to, &text("PUT", "/x", "r", 1, "").replace("Host: h\r\n", more));
    assert_eq!(with("Host: h\r\nUpgrade: websocket\r\nConnection: upgrade\r\n").status, 501);
    assert_eq!(
        with("Host: h\r\nUpgrade: h2c\r\nConnection: upgrade\r\n").status,
        200,
        "an offer may be ignored"
    );
    assert_eq!(with("").status, 400, "no Host");
    assert_eq!(with("Host: a\r\nHost: b\r\n").status, 400);
    assert_eq!(with("Host: h\r\nExpect: more\r\n").status, 417);
    assert_eq!(raw(to, "CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n").status, 501);
    assert_eq!(raw(to, "OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").status, 400);
    assert_eq!(with(&format!("Host: h\r\nX: {}\r\n", "y".repeat(9_000))).status, 431);
    assert_eq!(with(&format!("Host: h\r\n{}", "X: y\r\n".repeat(200))).status, 431);
    let large = raw(to, &text("PUT", "/x", "r", 1, "12345678901"));
    assert_eq!(large.refusal(), (413, "too_large".to_owned()));
    assert_eq!(large.problem()["applied"], "no");
    let chunked = text("PUT", "/x", "r", 1, "").replace("Content-Length: 0", "Transfer-Encoding: chunked");
    let large = raw(to, &format!("{chunked}b\r\n12345678901\r\n0\r\n\r\n"));
    assert_eq!((large.status, large.problem()["applied"].as_str().unwrap()), (413, "unknown"));
    assert_eq!(upstream.written().len(), 1, "{:?}", upstream.written());
}

#[test]
fn the_upstream_sees_the_client_and_no_header_that_was_meant_for_the_proxy() {
    let (_folder, _upstream, proxy) = start("");
    let text = text("PUT", "/head", "%C3%A9/1", 3, "").replace(
        "Connection: close\r\n",
        "Connection: close, X-Hop, X-Kunci-Token\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nX-Forwarded-For: 203.0.113.5\r\n",
    );
    let seen = raw(proxy.address(), &text).body;
    for line in [
        "host: h",
        "x-forwarded-for: 203.0.113.5, 127.0.0.1",
        "x-kunci-token: 3",
        "x-kunci-resource: %C3%A9/1",
    ] {
        assert!(seen.contains(line), "{line} isn't in\n{seen}");
    }
    for header in ["x-hop", "keep-alive", "te:", "connection"] {
        assert!(!seen.contains(header), "{header} is in\n{seen}");
    }
}

#[test]
fn an_upstream_that_is_not_there_is_said_so_and_nothing_waits_for_what_was_never_sent() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = Proxy::start(folder.path(), nobody, "");
    for token in [1, 2, 3] {
        let answer = put(proxy.address(), "/x", "r", token);
        assert_eq!(answer.refusal(), (502, "upstream_unreachable".to_owned()));
        assert_eq!(answer.problem()["applied"], "no");
    }
}

#[test]
fn settings_that_can_not_be_used_end_it_with_2_and_a_gate_in_use_with_1() {
    let (folder, upstream, proxy) = start("");
    let mut refused =
        Proxy::spawn(tempfile::tempdir().unwrap().path(), "listen = '127.0.0.1:0'\nupstrem = 'x'\n");
    assert_eq!(refused.ended().code(), Some(2));
    let other = tempfile::tempdir().unwrap();
    let settings = format!(
        "listen = '127.0.0.1:0'\nupstream = 'http://{}'\ngate = '{}'\n",
        upstream.address(),
        folder.path().join("gate").display()
    );
    let mut second = Proxy::spawn(other.path(), &settings);
    assert_eq!(second.ended().code(), Some(1));
    assert!(second.words().contains("is in use by process"), "{}", second.words());
    assert_eq!(put(proxy.address(), "/x", "r", 1).status, 200, "the first goes on");
}

#[test]
fn rejections_are_reported_to_kunci() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_folder, _upstream, proxy) =
        start(&format!("report_to = ['http://{}']", listener.local_addr().unwrap()));
    let to = proxy.address();
    assert_eq!((put(to, "/x", "r", 2).status, put(to, "/x", "r", 1).status), (200, 409));
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).unwrap();
    }
    assert!(head.starts_with("POST /fencing-rejections HTTP/1.1"), "{head}");
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap()];
    reader.read_exact(&mut body).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(report, json!({ "resource": "r", "token": 1, "current": 2 }));
}

/// A thousand at once, each for a resource of its own, over as many connections.
#[test]
fn a_thousand_resources_are_written_at_the_same_time() {
    // Two thousand sockets are in this process.
    let mut files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    files.current = files.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, files).unwrap();
    let (_folder, upstream, proxy) = start("");
    let to = proxy.address();
    let one = |number: u64| put(to, "/slow/100", &format!("r/{number}"), number + 1).status;
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let each: Vec<_> = (0..1_000)
            .map(|number| {
                let thread = std::thread::Builder::new().stack_size(256 << 10);
                thread.spawn_scoped(scope, move || one(number)).unwrap()
            })
            .collect();
        each.into_iter().map(|each| each.join().unwrap()).collect()
    });
    assert_eq!(answers, vec![200; 1_000]);
    assert_eq!(upstream.written().len(), 1_000);
    let late: Vec<Answer> = (1..10).map(|number| put(to, "/x", &format!("r/{number}"), number)).collect();
    assert!(late.iter().all(|late| late.status == 409), "{late:?}");
}
