//! `kunci acquire` through native doors: waiting, and being interrupted.

use crate::support::{Server, finish, kunci, run, signal, until};
use serde_json::json;
use std::process::{Child, Command};
use std::time::Duration;

fn acquire(server: &Server, options: &str) -> Command {
    let mut command = kunci("acquire r --json");
    command.args(server.option("--endpoints")).args(options.split_whitespace());
    command
}

fn waiting(server: &Server, options: &str) -> Child {
    let before = server.status("r")["queueLength"].as_u64().unwrap();
    let child = acquire(server, options).spawn().unwrap();
    until("it waits", || server.status("r")["queueLength"].as_u64() > Some(before));
    child
}

/// C56, C93
#[test]
fn an_interrupted_wait_leaves_nothing_in_the_queue() {
    let server = Server::start();
    assert_eq!(run(&mut acquire(&server, "--ttl 1m")).code, Some(0));
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let waiting = waiting(&server, "--owner w");
        signal(waiting.id(), name);
        let ran = finish(waiting);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{name}: {ran:?}");
        assert_eq!(server.status("r")["queueLength"], 0, "{name}");
    }
}

#[test]
fn a_wait_keeps_its_request_and_its_place_while_the_node_starts_again() {
    let mut server = Server::start();
    assert_eq!(run(&mut acquire(&server, "--ttl 3s")).code, Some(0));
    let first = waiting(&server, "--owner first --request-id q1");
    let second = waiting(&server, "--owner second");
    server = server.restarted(Duration::from_millis(400));
    let grant = finish(first);
    assert_eq!(grant.code, Some(0), "{grant:?}");
    assert_eq!(grant.json()["requestId"], "q1");
    let body = json!({ "leaseId": grant.json()["leaseId"] });
    assert_eq!(server.node.call("POST", "/locks/r/release", Some(&body)).unwrap().0, 200);
    let next = finish(second);
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(next.json()["fencingToken"].as_u64() > grant.json()["fencingToken"].as_u64());
}

/// A wait without a limit goes on when the policy's longest one is over, through either door.
#[test]
fn a_wait_without_a_limit_outlasts_the_longest_that_the_policy_allows() {
    let server = Server::start();
    let replaces = server.node.call("GET", "/policy", None).unwrap().1["policyRevision"].clone();
    let change = json!({ "replaces": replaces, "policy": { "waitMsMax": 300 } });
    assert_eq!(server.node.call("PUT", "/policy", Some(&change)).unwrap().0, 200);
    for door in ["--endpoints", "--url"] {
        assert_eq!(run(&mut acquire(&server, "--ttl 1500ms")).code, Some(0), "{door}");
        let ran = run(kunci("acquire r --ttl 1m").args(server.option(door)));
        assert_eq!(ran.code, Some(0), "{door}: {ran:?}");
        let too_long = run(kunci("acquire r --wait 1s").args(server.option(door)));
        assert_eq!(too_long.code, Some(1), "{door}: {too_long:?}");
        assert!(too_long.stderr.contains("out of policy"), "{door}: {too_long:?}");
        server.force("r");
    }
}
