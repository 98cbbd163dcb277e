//! The alerts of `deploy/` in a real Prometheus, which watches a real cluster.

use crate::node::free_port;
use crate::support::{Dev, acquire, free_base_port, signal, until};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::time::Instant;

/// What an operator must hear of, is to fire by then: case by case, from when it happens.
const FIRES_WITHIN: Duration = Duration::from_secs(5);
const WAITERS: usize = 300;

/// A running Prometheus; killed when dropped.
struct Prometheus {
    process: Child,
    http: SocketAddr,
}

impl Prometheus {
    /// Starts it on the configuration of `deploy/`, with these nodes in place of the example's.
    fn start(folder: &Path, nodes: &[SocketAddr]) -> Self {
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus");
        let example = std::fs::read_to_string(deploy.join("prometheus.yml")).unwrap();
        let targets = nodes.iter().map(|node| format!("\"{node}\"")).collect::<Vec<_>>().join(", ");
        let line = example.lines().find(|line| line.contains("targets:")).unwrap();
        std::fs::write(
            folder.join("prometheus.yml"),
            example.replace(line, &format!("      - targets: [{targets}]")),
        )
        .unwrap();
        std::fs::copy(deploy.join("kunci-rules.yml"), folder.join("kunci-rules.yml")).unwrap();
        let http = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let log = std::fs::File::create(folder.join("prometheus.log")).unwrap();
        let process = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=tsdb"])
            .arg(format!("--web.listen-address={http}"))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { process, http }
    }

    /// One question to its API.
    fn ask(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(self.http).ok()?;
        // The old version, whose answers come in one piece.
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// The alerts that fire.
    fn firing(&self) -> Vec<String> {
        let answer = self.ask("/api/v1/alerts").unwrap_or_default();
        let alerts = answer["data"]["alerts"].as_array().cloned().unwrap_or_default();
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        firing.filter_map(|alert| Some(alert["labels"]["alertname"].as_str()?.to_owned())).collect()
    }

    /// Waits for an alert, and fails when it comes too late.
    fn fires(&self, alert: &str, since: Instant) {
        until(&format!("{alert} fires"), || self.firing().iter().any(|firing| firing == alert).then_some(()));
        let took = since.elapsed();
        assert!(took < FIRES_WITHIN, "{alert} fires after {took:?}");
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Issue 8: kill the leader, fill a hot queue, stop a holder. Each is an alert within five seconds.
#[test]
fn a_dead_leader_a_hot_queue_and_a_stopped_holder_are_alerts_within_five_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), free_base_port(), 3);
    let nodes = [0, 1, 2].map(|index| dev.http(index));
    let prometheus = Prometheus::start(folder.path(), &nodes);
    until("all nodes are scraped, for a while", || {
        let up = prometheus.ask("/api/v1/query?query=min(count_over_time(up%5B10s%5D))")?;
        (up["data"]["result"][0]["value"][1].as_str()?.parse::<u32>().ok()? >= 4).then_some(())
    });
    assert_eq!(prometheus.firing(), [""; 0], "all is well");

    let leader = dev.leader(&[0, 1, 2]);
    let killed_at = Instant::now();
    signal(dev.pid(leader).unwrap(), "KILL");
    prometheus.fires("KunciNodeDown", killed_at);

    let left: Vec<u16> = (0..3).filter(|index| *index != leader).collect();
    acquire(dev.http(left[0]), "hot", "w");
    let leader = dev.leader(&left);
    let native = SocketAddr::from(([127, 0, 0, 1], dev.http(leader).port() + 1));
    let mut waiting = TcpStream::connect(native).unwrap();
    let filled_at = Instant::now();
    for number in 0..WAITERS {
        writeln!(waiting, "A hot 30 600 owner=w{number}").unwrap();
    }
    prometheus.fires("KunciQueueGrowing", filled_at);

    // A holder that is stopped doesn't renew: a second later its lease is over.
    let mut holder = TcpStream::connect(native).unwrap();
    writeln!(holder, "A mine 1 try owner=stopped").unwrap();
    std::thread::sleep(Duration::from_secs(1));
    prometheus.fires("KunciLeasesExpiring", Instant::now());
}
