//! `kunci bench` against a real node: each workload measures what it says, and leaves nothing behind.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]

mod node;

use node::{Node, free_port};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A node that serves, and where its native door is.
struct Target {
    node: Node,
    native: String,
    _data: TempDir,
}

impl Target {
    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let native = format!("127.0.0.1:{}", free_port());
        let flags = ["--peer", "127.0.0.1:0", "--native", &native];
        let mut node = Node::spawn(&data.path().join("data"), free_port(), &flags);
        for _ in 0..400 {
            if let Ok((200, _)) = node.call("GET", "/readyz", None) {
                return Self { node, native, _data: data };
            }
            let ended = node.ended();
            assert!(ended.is_none(), "the node ended at once: {ended:?}\n{}", node.words());
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the node doesn't serve after 20 s:\n{}", node.words());
    }

    fn bench(&self, words: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kunci"));
        command.arg("bench").args(words.split_whitespace());
        if !words.contains("--url") {
            command.args(["--endpoints", &self.native]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Starts a bench that goes on for long, and returns once it measures.
    fn measuring(&self, words: &str) -> Child {
        let mut bench = self.bench(&format!("{words} --warm-up 0s --progress --json"));
        let words = BufReader::new(bench.stderr.as_mut().unwrap());
        assert!(words.lines().any(|line| line.unwrap().contains("measuring")), "it never measured");
        bench
    }

    /// Runs a bench of one counted second to its end, and takes its figures.
    fn figures(&self, words: &str) -> Value {
        let output = self.bench(&format!("{words} --duration 1s --warm-up 200ms --json")).wait_with_output();
        let output = output.unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
        let figures = json(&output);
        assert_eq!(figures["errors"], serde_json::json!({}), "{words}");
        assert_eq!((&figures["seconds"], &figures["endedBy"]), (&1.0.into(), &"duration".into()), "{words}");
        self.has_nothing_left();
        figures
    }

    fn has_nothing_left(&self) {
        let (_, listed) = self.node.call("GET", "/locks?prefix=bench", None).unwrap();
        assert_eq!(listed["locks"], serde_json::json!([]));
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The operations of each kind, and that each has latencies in order.
fn operations(figures: &Value) -> Vec<(String, u64)> {
    let kinds = figures["kinds"].as_array().unwrap().iter().map(|kind| {
        let at = |name: &str| kind["latencyUs"][name].as_u64().unwrap();
        let latencies = ["min", "p50", "p90", "p99", "p999", "max"].map(at);
        assert!(latencies.is_sorted(), "{kind}");
        (kind["kind"].as_str().unwrap().to_owned(), kind["operations"].as_u64().unwrap())
    });
    kinds.collect()
}

fn kinds(operations: &[(String, u64)]) -> Vec<&str> {
    operations.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[test]
fn each_workload_measures_its_operations_and_leaves_nothing_behind() {
    let target = Target::start();

    let found = operations(&target.figures("acquire-release --clients 4"));
    assert_eq!(kinds(&found), ["acquire", "release"]);
    assert!(found[0].1.abs_diff(found[1].1) <= 4, "each client does one after the other: {found:?}");

    let found = operations(&target.figures("mix --clients 4 --held 40"));
    assert_eq!(kinds(&found), ["acquire", "renew", "release"]);
    assert!(found.iter().all(|(_, count)| count.abs_diff(found[0].1) <= 8), "a third of each: {found:?}");

    let found = operations(&target.figures("hand-off --clients 8"));
    assert_eq!(kinds(&found), ["acquire", "release", "hand-off"]);
    assert!(found[1].1.abs_diff(found[2].1) <= 1, "a hand-off for each release: {found:?}");

    let found = operations(&target.figures("reads --clients 4"));
    assert_eq!(kinds(&found), ["status"]);
}

#[test]
fn over_http_each_workload_measures_the_same() {
    let target = Target::start();
    let url = format!("--url http://{}", target.node.http());
    for (workload, expected) in [
        ("acquire-release --clients 4", ["acquire", "release"].as_slice()),
        ("mix --clients 4 --held 40", &["acquire", "renew", "release"]),
        ("hand-off --clients 8", &["acquire", "release", "hand-off"]),
        ("reads --clients 4", &["status"]),
    ] {
        let figures = target.figures(&format!("{workload} {url}"));
        assert_eq!(kinds(&operations(&figures)), expected);
        assert_eq!(figures["connections"], figures["clients"]);
        assert_eq!(figures["endpoints"], serde_json::json!([format!("http://{}", target.node.http())]));
        assert!(figures["cluster"].is_string(), "{figures}");
    }
}

#[test]
fn over_http_a_node_that_dies_shows_as_errors_by_code() {
    let target = Target::start();
    let url = format!("--url http://{}", target.node.http());
    let bench = target.measuring(&format!("mix --held 20 --duration 3s {url}"));
    let Target { node, _data, .. } = target;
    node.kill();
    let output = bench.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let figures = json(&output);
    assert!(figures["errors"]["unreachable"].as_u64().unwrap() > 0, "{figures}");
    assert!(figures["operations"].as_u64().unwrap() > 0, "{figures}");
}

#[test]
fn an_open_loop_starts_as_many_operations_as_its_rate_says() {
    let target = Target::start();
    for workload in ["acquire-release", "mix --held 30", "reads", "hand-off --clients 4"] {
        let figures = target.figures(&format!("{workload} --rate 60"));
        let operations = operations(&figures);
        let started: u64 = match workload {
            "hand-off --clients 4" => {
                operations.iter().filter(|(kind, _)| kind == "release").map(|(_, n)| n).sum()
            }
            _ => operations.iter().map(|(_, n)| n).sum(),
        };
        let never_begun = figures["neverBegun"].as_u64().unwrap();
        assert_eq!(started + never_begun, 60, "{workload}: {figures}");
    }
}

#[test]
fn a_rate_beyond_the_node_shows_as_late_and_never_begun() {
    let target = Target::start();
    let figures = target.figures("acquire-release --rate 1000000 --clients 8");
    let [late, operations] = ["late", "operations"].map(|name| figures[name].as_u64().unwrap());
    assert!(
        operations > 0 && late + 8 >= operations,
        "only the first of each client can be in time: {figures}"
    );
    assert!(figures["neverBegun"].as_u64().unwrap() > 800_000, "{figures}");
}

#[test]
fn an_interrupt_ends_it_with_the_figures_so_far_and_releases_what_was_held() {
    let target = Target::start();
    for workload in ["mix --held 50", "hand-off --clients 20", "reads"] {
        let bench = target.measuring(&format!("{workload} --duration 10m"));
        let process = rustix::process::Pid::from_child(&bench);
        rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
        let output = bench.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{workload}: {output:?}");
        let figures = json(&output);
        assert_eq!((&figures["endedBy"], &figures["leftBehind"]), (&"stop".into(), &0.into()), "{workload}");
        assert!(figures["operations"].as_u64().unwrap() > 0 && figures["seconds"].as_f64().unwrap() < 60.0);
        target.has_nothing_left();
    }
}

#[test]
fn a_node_that_dies_shows_as_errors_by_code_and_as_locks_left_behind() {
    let target = Target::start();
    let bench = target.measuring("mix --held 20 --duration 3s");
    let Target { node, _data, .. } = target;
    node.kill();
    let output = bench.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let figures = json(&output);
    assert!(figures["errors"]["unreachable"].as_u64().unwrap() > 0, "{figures}");
    assert!(figures["leftBehind"].as_u64().unwrap() > 0, "{figures}");
    assert!(figures["operations"].as_u64().unwrap() > 0, "{figures}");
}

#[test]
fn people_are_told_which_cluster_is_loaded_and_see_a_table() {
    let target = Target::start();
    let bench = target.bench("reads --clients 2 --duration 1500ms --warm-up 0s --progress");
    let output = bench.wait_with_output().unwrap();
    let (table, words) = (text(&output.stdout), text(&output.stderr));
    let (_, cluster) = node::call(target.node.http(), "GET", "/cluster", None).unwrap();
    let cluster = cluster["clusterId"].as_str().unwrap();
    let first = words.lines().next().unwrap();
    assert!(first.contains(cluster) && first.contains(&target.native) && first.contains("bench/"), "{words}");
    assert!(words.contains("measuring"), "{words}");
    assert!(table.starts_with("reads, closed loop: 2 clients") && table.contains("\nstatus "), "{table}");
}

#[test]
fn nobody_there_and_a_cluster_that_only_the_environment_names_are_refused() {
    let kunci = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kunci"));
        command.args(["bench", "reads"]).args(words).env("KUNCI_ENDPOINTS", "192.0.2.1:7401");
        command.output().unwrap()
    };
    let output = kunci(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("name the cluster outright with --endpoints"), "{output:?}");
    let output = kunci(&["--endpoints", &format!("127.0.0.1:{}", free_port())]);
    assert_eq!(output.status.code(), Some(69));
    assert!(text(&output.stderr).contains("kunci server"), "{output:?}");
}
