//! Clusters for tests: single nodes that wait to be told, and whole ones by `kunci dev-cluster`.

use crate::node::{Node, call, free_port};
use serde_json::{Value, json};
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Whatever a test waits for has happened by then, or the test fails.
const STEPS_MAX: usize = 1_200;
const STEP: Duration = Duration::from_millis(50);

/// Waits until something is so, for at most a minute.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..STEPS_MAX {
        if let Some(seen) = look() {
            return seen;
        }
        std::thread::sleep(STEP);
    }
    panic!("not so after a minute: {what}");
}

/// The binary with these words, split at spaces.
pub(crate) fn kunci(words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kunci")).args(words.split(' ')).stdin(Stdio::null()).output().unwrap()
}

/// Both outputs as text.
pub(crate) fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs the binary with these words, and expects it to succeed; what it prints.
pub(crate) fn done(line: &str) -> String {
    let output = kunci(line);
    assert_eq!(output.status.code(), Some(0), "kunci {line}: {}", words(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs the binary with these words, and expects this exit code; what it says.
pub(crate) fn refused(code: i32, line: &str) -> String {
    let output = kunci(line);
    assert_eq!(output.status.code(), Some(code), "kunci {line}: {}", words(&output));
    words(&output)
}

/// What `GET /cluster` says.
pub(crate) fn cluster(http: SocketAddr) -> Option<Value> {
    match call(http, "GET", "/cluster", None) {
        Ok((200, body)) => Some(body),
        _ => None,
    }
}

/// The ids of those with a vote, in the eyes of one node.
pub(crate) fn voters(body: &Value) -> Vec<u64> {
    let nodes = body["nodes"].as_array().unwrap();
    let voters = nodes.iter().filter(|node| !matches!(node["role"].as_str(), Some("learner" | "new")));
    voters.map(|node| node["id"].as_u64().unwrap()).collect()
}

/// Gets a lock, trying again while there is no leader; the grant.
pub(crate) fn acquire(http: SocketAddr, resource: &str, owner: &str) -> Value {
    let id = format!("{resource}-{owner}");
    let body =
        json!({ "clientId": owner, "requestId": id, "leaseDurationMs": 600_000, "waitTimeoutMs": 5_000 });
    until(&format!("{resource} is granted to {owner}"), || {
        match call(http, "POST", &format!("/locks/{resource}/acquire"), Some(&body)) {
            Ok((200, grant)) => Some(grant),
            Ok((503, _)) | Err(_) => None,
            Ok(other) => panic!("{resource} for {owner}: {other:?}"),
        }
    })
}

/// Who holds a lock, as far as a node can say now.
pub(crate) fn holder(http: SocketAddr, resource: &str) -> Option<(String, u64)> {
    let Ok((200, lock)) = call(http, "GET", &format!("/locks/{resource}"), None) else { return None };
    Some((lock["holder"].as_str()?.to_owned(), lock["fencingToken"].as_u64()?))
}

/// A node that belongs to no cluster, with its two addresses.
pub(crate) struct Single {
    pub(crate) node: Node,
    pub(crate) peer: String,
}

impl Single {
    /// Starts it, and waits until it waits.
    pub(crate) fn start(folder: &Path, name: &str, flags: &[&str]) -> Self {
        let peer = format!("127.0.0.1:{}", free_port());
        let flags = [&["--peer", &peer, "--wait-for-cluster"], flags].concat();
        let mut node = Node::spawn(&folder.join(name), free_port(), &flags);
        until(&format!("{name} answers"), || {
            let ended = node.ended();
            assert!(ended.is_none(), "{name} ended: {ended:?}\n{}", node.words());
            cluster(node.http())
        });
        Self { node, peer }
    }

    pub(crate) fn http(&self) -> SocketAddr {
        self.node.http()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.node.http())
    }

    pub(crate) fn cluster(&self) -> Value {
        until("the node answers", || cluster(self.http()))
    }
}

/// A block of ports that was free a moment ago, below those that the system gives to connections.
pub(crate) fn free_base_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = 12_000 + u16::try_from(std::process::id() % 170).unwrap() * 100;
    until("a block of ports is free", || {
        let base = start + NEXT.fetch_add(1, Ordering::Relaxed) % 20 * 100;
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        let block = (0..9).flat_map(|node| (0..3).map(move |door| base + 10 * node + door));
        block.into_iter().all(is_free).then_some(base)
    })
}

/// A running `kunci dev-cluster`; killed when dropped, and its nodes with it.
pub(crate) struct Dev {
    process: Child,
    folder: PathBuf,
    base_port: u16,
}

impl Dev {
    /// Starts it in a folder, without waiting for it.
    pub(crate) fn spawn(folder: &Path, base_port: u16, nodes: u16) -> Self {
        let out = |name: &str| {
            let path = folder.join(name);
            File::options().create(true).append(true).open(path).unwrap()
        };
        let process = Command::new(env!("CARGO_BIN_EXE_kunci"))
            .args(["dev-cluster", "--data", "dev"])
            .args(["--nodes", &nodes.to_string(), "--base-port", &base_port.to_string()])
            // Settings of whoever runs the tests are for one node, and mustn't reach these.
            .env("KUNCI_HTTP", "127.0.0.1:1")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(out("dev.out"))
            .stderr(out("dev.err"))
            .spawn()
            .unwrap();
        Self { process, folder: folder.to_owned(), base_port }
    }

    /// Starts it, and waits until it says that the cluster is up.
    pub(crate) fn start(folder: &Path, base_port: u16, nodes: u16) -> Self {
        std::fs::write(folder.join("dev.out"), "").unwrap();
        let mut dev = Self::spawn(folder, base_port, nodes);
        until("the cluster is up", || {
            let ended = dev.process.try_wait().unwrap();
            assert!(ended.is_none(), "dev-cluster ended: {ended:?}\n{}", dev.words());
            dev.words().contains("Ctrl-C here").then_some(())
        });
        dev
    }

    /// Everything that it has said.
    pub(crate) fn words(&self) -> String {
        let text = |name: &str| std::fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        format!("{}{}", text("dev.out"), text("dev.err"))
    }

    /// Where a node's HTTP is.
    pub(crate) fn http(&self, index: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.base_port + 10 * index))
    }

    /// The file or folder of a node.
    pub(crate) fn of_node(&self, index: u16, name: &str) -> PathBuf {
        self.folder.join(format!("dev/node-{index}")).join(name)
    }

    /// What a node has said.
    pub(crate) fn log(&self, index: u16) -> String {
        std::fs::read_to_string(self.of_node(index, "log")).unwrap_or_default()
    }

    /// The process id in a node's pid file.
    pub(crate) fn pid(&self, index: u16) -> Option<u32> {
        std::fs::read_to_string(self.of_node(index, "pid")).ok()?.trim().parse().ok()
    }

    /// Which node leads, in the eyes of the first one of `asked` that knows.
    pub(crate) fn leader(&self, asked: &[u16]) -> u16 {
        until("there is a leader", || {
            asked.iter().find_map(|index| {
                let body = cluster(self.http(*index))?;
                let id = body["leader"].as_u64()?;
                let leader = body["nodes"].as_array()?.iter().find(|node| node["id"].as_u64() == Some(id))?;
                let http: SocketAddr = leader["http"].as_str()?.parse().ok()?;
                Some((http.port() - self.base_port) / 10)
            })
        })
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.process.id(), name);
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        until("dev-cluster ends", || self.process.try_wait().unwrap())
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Sends a signal to one process.
pub(crate) fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}

/// Whether a process runs; one that only waits to be collected doesn't.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}
