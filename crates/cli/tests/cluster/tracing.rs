//! One request in the logs of two nodes.

use crate::support::{Single, done, until, voters};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// An acquire with these headers; the whole answer.
fn acquire(http: SocketAddr, resource: &str, headers: &str) -> String {
    let body = r#"{"clientId":"w","requestId":"a-secret-request-id","waitTimeoutMs":5000}"#;
    let mut stream = TcpStream::connect(http).unwrap();
    write!(
        stream,
        "POST /locks/{resource}/acquire HTTP/1.1\r\nHost: kunci\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The `traceparent` of an answer.
fn traceparent(answer: &str) -> &str {
    let line = answer.lines().find_map(|line| line.strip_prefix("traceparent: "));
    line.unwrap_or_else(|| panic!("no traceparent in {answer}"))
}

/// Issue 8: a request's id through doors, forwarding and commit, in the words of both nodes; and never a secret.
#[test]
fn a_followed_request_has_one_id_in_the_logs_of_both_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let levels = "info,kunci::request=debug";
    let leader = Single::start(folder.path(), "leader", &["--log-level", levels]);
    let other = Single::start(folder.path(), "other", &["--log-level", levels, "--log-format", "json"]);
    done(&format!("cluster init --url {}", leader.url()));
    done(&format!("cluster add {} --url {}", other.peer, leader.url()));
    until("the other one votes", || (voters(&other.cluster()).len() == 2).then_some(()));

    let answer = acquire(other.http(), "a", &format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n"));

    assert!(answer.contains("\"acquired\":true"), "{answer}");
    let parent = traceparent(&answer);
    assert!(parent.starts_with(&format!("00-{TRACE}-")) && parent.ends_with("-01"), "{parent}");
    assert!(!parent.contains("00f067aa0ba902b7"), "the answer names what was done here: {parent}");
    let said =
        |words: &str, what: &str| words.lines().any(|line| line.contains(TRACE) && line.contains(what));
    until("the leader has told of it", || {
        said(&leader.node.words(), "the request is answered").then_some(())
    });
    until("and so has the other one", || said(&other.node.words(), "the request is answered").then_some(()));
    let (here, there) = (leader.node.words(), other.node.words());
    assert!(
        said(&there, "a request came to the HTTP door") && said(&there, "passed on to the leader"),
        "{there}"
    );
    assert!(said(&here, "passed on to this node, which leads"), "{here}");
    let json = there.lines().find(|line| line.contains(TRACE)).unwrap();
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["span"]["request"], TRACE, "{json}");
    for words in [&here, &there] {
        assert!(!words.contains("a-secret-request-id") && !words.contains("leaseId"), "{words}");
    }

    let quiet = acquire(other.http(), "b", "");
    let id = traceparent(&quiet)[3..35].to_owned();
    assert!(traceparent(&quiet).ends_with("-00") && id != TRACE, "{quiet}");
    assert!(!leader.node.words().contains(&id) && !other.node.words().contains(&id), "nobody asked for it");
}

/// A setting that this program can't follow is refused, not forgotten.
#[cfg(not(feature = "otlp"))]
#[test]
fn spans_are_sent_only_by_a_program_that_can() {
    let folder = tempfile::tempdir().unwrap();
    let line = format!("server --otlp 127.0.0.1:4318 --http 127.0.0.1:0 --data {}", folder.path().display());
    let said = crate::support::refused(1, &line);
    assert!(said.contains("built without it"), "{said}");
}
