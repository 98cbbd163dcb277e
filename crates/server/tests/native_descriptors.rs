//! Thousands of idle native connections, and a node without file descriptors. Alone in its process, because it changes the
//! process's limits.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test helpers fail by panicking, and say what they measured"
)]

mod native_support;

use kunci_server::native::NativeLimits;
use native_support::{Client, Node, field, until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncBufReadExt as _;
use tokio::net::TcpSocket;
use tokio::time::{sleep, timeout};

const CONNECTIONS: usize = 10_000;
const BYTES_MAX: u64 = 200 << 20;
/// Says to the process of the clients where the node is.
const ADDRESS: &str = "KUNCI_TEST_NATIVE_ADDRESS";
const ALL_OPEN: &str = "all are open";

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::from_secs(now.tv_sec.unsigned_abs()) + Duration::from_nanos(now.tv_nsec.unsigned_abs())
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
}

/// Case C117: without descriptors the door neither spins nor hangs, open connections go on, and it takes new ones as soon
/// as it can. And 10,000 idle ones take less than 200 MB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_are_cheap_and_without_descriptors_the_door_waits() {
    let node = Node::start_with(NativeLimits::default()).await;
    let mut holder = node.connect().await;
    let granted = holder.ask("A k 60 try").await;
    let renew = format!("N k {}", field(&granted, "lease"));
    let before = getrlimit(Resource::Nofile);

    many_idle(&node, before).await;

    // The clients have their descriptors before; the door finds five for thirty of them.
    let sockets: Vec<TcpSocket> = (0..30).map(|_| TcpSocket::new_v4().unwrap()).collect();
    let open = descriptors();
    setrlimit(Resource::Nofile, Rlimit { current: Some(open + 5), ..before }).unwrap();
    let mut idle = Vec::new();
    for socket in sockets {
        idle.push(socket.connect(node.address).await.unwrap());
    }
    let began = processor_time();
    for _ in 0..10 {
        assert!(holder.ask(&renew).await.starts_with("N N k"));
        sleep(Duration::from_millis(100)).await;
    }
    // A task that spins takes the second; a node that waits takes a tenth of it, unoptimised.
    let used = processor_time() - began;
    assert!(used < Duration::from_millis(500), "it spins: {used:?} of processor time in a second");

    drop(idle);
    until("the door takes connections again", async || {
        match tokio::net::TcpStream::connect(node.address).await {
            Ok(_) => Client::connect(node.address).await.ask("P").await.starts_with("P P"),
            Err(_) => false,
        }
    })
    .await;
    assert!(holder.ask(&renew).await.starts_with("N N k"));
    setrlimit(Resource::Nofile, before).unwrap();
    node.stop().await;
}

fn descriptors() -> u64 {
    u64::try_from(std::fs::read_dir("/proc/self/fd").unwrap().count()).unwrap()
}

/// 10,000 idle connections take less than 200 MB. Their other ends are in a process of their own, for whose descriptors and
/// memory the node isn't to be charged. Ends when the node has closed them all: what it does for that is no part of what
/// comes next, nor are the descriptors that it gives back.
async fn many_idle(node: &Node, before: Rlimit) {
    setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before }).unwrap();
    let at_first = resident_bytes();
    let mut clients = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_clients_of_the_idle_connections", "--nocapture"])
        .env(ADDRESS, node.address.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let open = descriptors();
    let mut said = tokio::io::BufReader::new(clients.stdout.take().unwrap()).lines();
    let all_open = async { while said.next_line().await.unwrap().unwrap() != ALL_OPEN {} };
    timeout(Duration::from_secs(60), all_open).await.unwrap();
    let taken = resident_bytes().saturating_sub(at_first);
    println!("{CONNECTIONS} idle connections take {} MB", taken >> 20);
    assert!(taken < BYTES_MAX, "{CONNECTIONS} connections take {} MB", taken >> 20);
    drop(clients.stdin.take());
    assert!(clients.wait().await.unwrap().success());
    drop(clients);
    until("the idle connections are closed", async || descriptors() <= open).await;
    setrlimit(Resource::Nofile, before).unwrap();
}

/// The other ends: opens them all, has each answered once, and waits until its input ends. Nothing without an address.
#[test]
fn the_clients_of_the_idle_connections() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before }).unwrap();
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"P\n").unwrap();
        let mut answer = [0; 64];
        let count = stream.read(&mut answer).unwrap();
        assert!(answer[..count].starts_with(b"P P at="), "{:?}", &answer[..count]);
        idle.push(stream);
    }
    println!("\n{ALL_OPEN}");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}
