//! `/metrics` of three real nodes under real load, as Prometheus' own tool reads it.

use crate::node::call;
use crate::support::{Dev, cluster, free_base_port, signal, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What a node shows: each series with its number.
struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    /// Of one node; Prometheus' tool finds nothing to complain about.
    fn of(http: SocketAddr) -> Self {
        let text = text_of(http);
        check(&text);
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let samples = samples.map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            (series.to_owned(), value.parse().unwrap())
        });
        Self(samples.collect())
    }

    fn get(&self, series: &str) -> f64 {
        self.0.get(series).copied().unwrap_or_else(|| panic!("no series {series}"))
    }

    /// How many requests ended so.
    fn requests(&self, door: &str, op: &str, outcome: &str) -> f64 {
        let of = format!("{{door=\"{door}\",op=\"{op}\",outcome=\"{outcome}\"}}");
        self.0.get(&format!("kunci_request_duration_seconds_count{of}")).copied().unwrap_or(0.0)
    }
}

fn text_of(http: SocketAddr) -> String {
    let mut stream = TcpStream::connect(http).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/plain; version=0.0.4"), "{head}");
    body.to_owned()
}

fn check(text: &str) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}\n{text}", String::from_utf8_lossy(&said));
}

fn acquire(http: SocketAddr, resource: &str, owner: &str, wait_ms: u64) -> (u16, Value) {
    let body = json!({ "clientId": owner, "leaseDurationMs": 60_000, "waitTimeoutMs": wait_ms });
    call(http, "POST", &format!("/locks/{resource}/acquire"), Some(&body)).unwrap()
}

fn with_lease(http: SocketAddr, what: &str, resource: &str, grant: &Value) -> u16 {
    let body = json!({ "leaseId": grant["leaseId"] });
    call(http, "POST", &format!("/locks/{resource}/{what}"), Some(&body)).unwrap().0
}

/// A conversation in lines.
struct Lines(BufReader<TcpStream>);

impl Lines {
    fn say(&mut self, line: &str) -> String {
        writeln!(self.0.get_mut(), "{line}").unwrap();
        let mut answer = String::new();
        self.0.read_line(&mut answer).unwrap();
        answer
    }
}

fn native_of(http: SocketAddr) -> SocketAddr {
    let body = cluster(http).unwrap();
    let own = http.to_string();
    let node = body["nodes"].as_array().unwrap().iter().find(|node| node["http"] == own.as_str()).unwrap();
    node["native"].as_str().unwrap().parse().unwrap()
}

/// Everything that is asked of a node over HTTP here; `http` passes it on.
fn load_http(http: SocketAddr) {
    for number in 0..12 {
        let name = format!("h{number}");
        let (status, grant) = acquire(http, &name, "w", 0);
        assert_eq!(status, 200, "{grant}");
        assert_eq!(acquire(http, &name, "other", 0).0, 409);
        assert_eq!(with_lease(http, "renew", &name, &grant), 200);
        if number < 5 {
            assert_eq!(with_lease(http, "release", &name, &grant), 200);
            assert_eq!(with_lease(http, "renew", &name, &grant), 409);
        }
    }
    assert_eq!(acquire(http, "h9", "late", 200).0, 409);
    assert_eq!(call(http, "POST", "/locks/h9/acquire", Some(&json!({ "no": 1 }))).unwrap().0, 400);
    assert_eq!(call(http, "GET", "/locks/h9", None).unwrap().0, 200);
    let rejection = json!({ "resource": "h9", "token": 1, "current": 2 });
    assert_eq!(call(http, "POST", "/fencing-rejections", Some(&rejection)).unwrap().0, 200);
}

fn load_native(native: SocketAddr) {
    let mut lines = Lines(BufReader::new(TcpStream::connect(native).unwrap()));
    let mut leases = Vec::new();
    for number in 0..9 {
        let answer = lines.say(&format!("A n{number} 60 try"));
        assert!(answer.starts_with("A A "), "{answer}");
        leases.push(answer.split("lease=").nth(1).unwrap().split(' ').next().unwrap().to_owned());
    }
    assert!(lines.say("A n0 60 try").starts_with("H A "));
    assert!(lines.say("A n0 60 0.1").starts_with("T A "));
    for (number, lease) in leases.iter().enumerate().take(4) {
        assert!(lines.say(&format!("N n{number} {lease}")).starts_with("N N "));
        assert!(lines.say(&format!("R n{number} {lease}")).starts_with("R R "));
    }
    assert!(lines.say(&format!("N n0 {}", leases[0])).starts_with("E N "));
    assert!(lines.say("Q n8").starts_with("Q Q "));
}

/// A release serves somebody who waits, and another lease runs out.
fn hand_off_and_expire(leads: SocketAddr) {
    let (_, grant) = acquire(leads, "handed", "first", 0);
    let waiter = std::thread::spawn(move || acquire(leads, "handed", "second", 20_000).0);
    until("somebody waits", || (Scrape::of(leads).get("kunci_waiters") > 0.0).then_some(()));
    assert_eq!(with_lease(leads, "release", "handed", &grant), 200);
    assert_eq!(waiter.join().unwrap(), 200);
    let body = json!({ "clientId": "w", "leaseDurationMs": 1_000 });
    assert_eq!(call(leads, "POST", "/locks/brief/acquire", Some(&body)).unwrap().0, 200);
    let expired = "kunci_events_total{kind=\"expired\"}";
    until("it has expired", || (Scrape::of(leads).get(expired) >= 1.0).then_some(()));
}

/// Issue 8: what is asked on both doors of a cluster is counted, once each, where it was asked.
#[test]
fn requests_on_both_doors_count_once_each_and_the_numbers_are_well_formed() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), free_base_port(), 3);
    let leader = dev.leader(&[0, 1, 2]);
    let (leads, follows) = (dev.http(leader), dev.http((leader + 1) % 3));
    let before = Scrape::of(leads);
    load_http(follows);
    load_native(native_of(leads));
    hand_off_and_expire(leads);

    let leads = Scrape::of(leads);
    until("the follower is as far", || {
        let is_far = Scrape::of(follows).get("kunci_applied_index") >= leads.get("kunci_applied_index");
        is_far.then_some(())
    });
    let follows = Scrape::of(follows);
    let at_follower = |op, outcome| follows.requests("http", op, outcome);
    assert_eq!(
        ["granted", "refused", "timed_out", "rejected"].map(|how| at_follower("acquire", how)),
        [12.0, 12.0, 1.0, 1.0]
    );
    assert_eq!(["done", "lost"].map(|how| at_follower("renew", how)), [12.0, 5.0]);
    assert_eq!((at_follower("release", "done"), at_follower("read", "done")), (5.0, 1.0));
    assert_eq!(
        leads.requests("http", "acquire", "granted") - before.requests("http", "acquire", "granted"),
        3.0
    );
    let native = |op, outcome| leads.requests("native", op, outcome);
    assert_eq!(["granted", "refused", "timed_out"].map(|how| native("acquire", how)), [9.0, 1.0, 1.0]);
    assert_eq!(["done", "lost"].map(|how| native("renew", how)), [4.0, 1.0]);
    assert_eq!((native("release", "done"), native("read", "done")), (4.0, 1.0));

    // The log is the same everywhere, once it is applied everywhere.
    for scrape in [&leads, &follows] {
        let moved = |series: &str| scrape.get(series) - before.0.get(series).copied().unwrap_or(0.0);
        assert_eq!(moved("kunci_events_total{kind=\"granted\"}"), 24.0);
        assert_eq!(moved("kunci_events_total{kind=\"released\"}"), 10.0);
        assert_eq!(moved("kunci_events_total{kind=\"timed_out\"}"), 2.0);
        assert_eq!(moved("kunci_handoffs_total"), 1.0);
        assert_eq!(moved("kunci_renewals_total{outcome=\"renewed\"}"), 16.0);
        assert_eq!(moved("kunci_renewals_total{outcome=\"lost\"}"), 6.0);
        assert_eq!(moved("kunci_lease_hold_seconds_count{end=\"expired\"}"), 1.0);
        assert!(moved("kunci_lease_hold_seconds_sum{end=\"expired\"}") >= 1.0);
        assert_eq!(moved("kunci_lease_wait_seconds_count{end=\"granted\"}"), 1.0);
        assert_eq!(scrape.get("kunci_leases"), 13.0);
        assert_eq!((scrape.get("kunci_serving"), scrape.get("kunci_members_healthy")), (1.0, 3.0));
        assert!(scrape.get("kunci_fsync_duration_seconds_count") > 10.0);
        for series in [
            "kunci_disk_free_bytes",
            "kunci_log_bytes",
            "kunci_cluster_time_seconds",
            "kunci_applied_bytes_total",
        ] {
            assert!(scrape.get(series) > 0.0, "{series}");
        }
    }
    assert_eq!((leads.get("kunci_leads"), follows.get("kunci_leads")), (1.0, 0.0));
    assert_eq!(
        (leads.get("kunci_role{role=\"leader\"}"), follows.get("kunci_role{role=\"follower\"}")),
        (1.0, 1.0)
    );
    assert_eq!(
        (leads.get("kunci_fencing_rejections_total"), follows.get("kunci_fencing_rejections_total")),
        (0.0, 1.0)
    );
    assert!(follows.get("kunci_http_passed_on_total") >= 40.0);
    assert!(leads.get("kunci_commit_duration_seconds_count") > 20.0);
    assert_eq!(leads.get("kunci_connections_opened_total{door=\"native\"}"), 1.0);
    assert!(leads.get("kunci_received_bytes_total{door=\"native\"}") > 200.0);
    assert!(leads.get("kunci_sent_bytes_total{door=\"native\"}") > 500.0);
}

/// Issue 8: an election shows in the numbers of those that are left, and so does its end.
#[test]
fn a_change_of_leader_shows_in_the_numbers_of_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), free_base_port(), 3);
    let leader = dev.leader(&[0, 1, 2]);
    let others = [(leader + 1) % 3, (leader + 2) % 3].map(|index| dev.http(index));
    let before = others.map(Scrape::of);

    signal(dev.pid(leader).unwrap(), "KILL");
    until("one of them leads", || {
        std::thread::sleep(Duration::from_millis(50));
        let leads: f64 = others.iter().map(|http| Scrape::of(*http).get("kunci_leads")).sum();
        (leads > 0.0).then_some(())
    });
    until("both know", || {
        others.iter().all(|http| Scrape::of(*http).get("kunci_serving") > 0.0).then_some(())
    });

    let after = others.map(Scrape::of);
    for (before, after) in before.iter().zip(&after) {
        let moved = |series: &str| after.get(series) - before.get(series);
        assert!(moved("kunci_term") >= 1.0 && moved("kunci_elections_total") >= 1.0);
        assert!(moved("kunci_leader_changes_total") >= 1.0);
        assert!(moved("kunci_election_duration_seconds_count") >= 1.0);
        assert_eq!(after.get("kunci_without_leader_seconds"), 0.0);
    }
    let took_over: f64 = after.iter().map(|scrape| scrape.get("kunci_takeover_duration_seconds_count")).sum();
    assert!(took_over >= 1.0);
    until("the dead one isn't counted on", || {
        others.iter().all(|http| Scrape::of(*http).get("kunci_members_healthy") < 3.0).then_some(())
    });
}
