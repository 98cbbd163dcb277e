//! Three kunci nodes on this machine, by `kunci dev-cluster`.
//!
//! Owns: starting and ending them. Never: a lock.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

const NODES: u16 = 3;
/// How far the ports of two nodes are from each other.
const PORTS_EACH: u16 = 10;
const TRIES: usize = 5;
const STEP: Duration = Duration::from_millis(50);
/// A cluster that isn't up after this many steps never will be.
const STEPS_MAX: usize = 600;

/// A running cluster; killed when dropped, and its nodes with it.
pub(crate) struct Cluster {
    process: Child,
    folder: PathBuf,
    base_port: u16,
}

impl Cluster {
    /// Starts it in a folder of its own and waits until it serves.
    pub(crate) fn start(folder: &Path) -> Self {
        for attempt in 0..TRIES {
            let folder = folder.join(format!("cluster-{attempt}"));
            std::fs::create_dir_all(&folder).unwrap();
            let mut cluster = Self::spawn(folder);
            if cluster.is_up() {
                return cluster;
            }
            // Somebody else took one of its ports in between.
            eprintln!("a cluster didn't start:\n{}", cluster.words());
        }
        panic!("no cluster after {TRIES} tries");
    }

    fn spawn(folder: PathBuf) -> Self {
        let base_port = free_base_port();
        let words = File::options().create(true).append(true).open(folder.join("words")).unwrap();
        // The kernel ends it should this test be killed.
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", env!("CARGO_BIN_EXE_kunci"), "dev-cluster", "--data", "dev"])
            .args(["--nodes", &NODES.to_string(), "--base-port", &base_port.to_string()])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(words.try_clone().unwrap())
            .stderr(words)
            .spawn()
            .expect("setpriv is there: it is in the package util-linux");
        Self { process, folder, base_port }
    }

    fn is_up(&mut self) -> bool {
        for _ in 0..STEPS_MAX {
            if self.words().contains("Ctrl-C here") {
                return true;
            }
            if self.process.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::sleep(STEP);
        }
        false
    }

    /// Everything that it has said.
    pub(crate) fn words(&self) -> String {
        std::fs::read_to_string(self.folder.join("words")).unwrap_or_default()
    }

    /// Where its native doors are, as clients take them.
    pub(crate) fn doors(&self) -> Vec<String> {
        (0..NODES).map(|node| format!("127.0.0.1:{}", self.base_port + PORTS_EACH * node + 1)).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A block of ports that was free a moment ago, below those that the system gives to connections.
fn free_base_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = 12_000 + u16::try_from(std::process::id() % 170).unwrap() * 100;
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let blocks = (0..20).map(|_| start + NEXT.fetch_add(1, Ordering::Relaxed) % 20 * 50);
    let all_free = |base: &u16| {
        let mut block = (0..NODES).flat_map(|node| (0..3).map(move |door| base + PORTS_EACH * node + door));
        block.all(is_free)
    };
    blocks.into_iter().find(all_free).expect("one of twenty blocks of ports is free")
}
