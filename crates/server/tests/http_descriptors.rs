//! A node that has run out of file descriptors. Alone in its process, because it lowers the process's limit.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]

mod http_support;

use http_support::{Node, until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpSocket;
use tokio::time::sleep;

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::from_secs(now.tv_sec.unsigned_abs()) + Duration::from_nanos(now.tv_nsec.unsigned_abs())
}

/// Case C117: without descriptors the door neither spins nor hangs, open connections go on, and it takes new ones as
/// soon as it can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_descriptors_the_door_waits_and_open_connections_go_on() {
    let node = Node::start().await;
    let mut holder = node.connect().await;
    let grant = holder.call("POST", "/locks/r/acquire", json!({"clientId": "a"})).await;

    // The clients have their descriptors before; the door finds five for thirty of them.
    let sockets: Vec<TcpSocket> = (0..30).map(|_| TcpSocket::new_v4().unwrap()).collect();
    let before = getrlimit(Resource::Nofile);
    let open = u64::try_from(std::fs::read_dir("/proc/self/fd").unwrap().count()).unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(open + 5), ..before }).unwrap();
    let mut idle = Vec::new();
    for socket in sockets {
        idle.push(socket.connect(node.address).await.unwrap());
    }
    let renew = json!({"leaseId": grant.body["leaseId"]});
    let began = processor_time();
    for _ in 0..10 {
        assert_eq!(holder.call("POST", "/locks/r/renew", renew.clone()).await.status, 200);
        sleep(Duration::from_millis(100)).await;
    }
    let used = processor_time() - began;
    assert!(used < Duration::from_millis(700), "it spins: {used:?} of processor time in a second");

    drop(idle);
    until("the door takes connections again", async || {
        match tokio::net::TcpStream::connect(node.address).await {
            Ok(_) => node.get("/livez").await.status == 200,
            Err(_) => false,
        }
    })
    .await;
    assert_eq!(holder.call("GET", "/locks/r", Value::Null).await.body["held"], true);
    setrlimit(Resource::Nofile, before).unwrap();
    node.stop().await;
}
