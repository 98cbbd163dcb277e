//! What a crowd of clients that never read costs the node. Alone in its process, whose memory is measured.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]

mod native_support;

use native_support::{Client, Node, field};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, timeout};

const DEAF: u64 = 50;
/// Each may have 4,096 requests under way, of 2.5 KiB at most.
const BYTES_MAX: u64 = DEAF * 4_096 * 2_560;

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4_096
}

/// Case C119: a slow request at the head with many behind it, a million statuses and tries, and nobody who reads. What they
/// can take is bounded, and a holder goes on as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_never_read_take_a_bounded_part_of_the_nodes_memory() {
    let node = Node::start().await;
    let mut holder = node.connect().await;
    let granted = holder.ask("A slow 60 try").await;
    let renew = format!("N slow {}", field(&granted, "lease"));
    let at_first = resident_bytes();

    let lines: String = (0..2_000).map(|number| format!("Q k{number}\nA slow 30 try\n")).collect();
    let mut deaf: Vec<Client> = Vec::new();
    for _ in 0..DEAF {
        let mut client = node.connect().await;
        client.say("A slow 30 600").await;
        deaf.push(client);
    }
    let end = Instant::now() + Duration::from_secs(5);
    let mut most = 0;
    while Instant::now() < end {
        for client in &mut deaf {
            // One that takes no more is left as it is: the rest of the line comes with the next try.
            drop(timeout(Duration::from_millis(5), client.stream.write_all(lines.as_bytes())).await);
        }
        most = most.max(resident_bytes().saturating_sub(at_first));
        let renewed = timeout(Duration::from_secs(2), holder.ask(&renew)).await.unwrap();
        assert!(renewed.starts_with("N N slow"), "{renewed}");
    }
    assert!(most < BYTES_MAX, "{DEAF} clients that never read take {} MB", most >> 20);
    println!("{DEAF} clients that never read take {} MB", most >> 20);
    drop(deaf);
    node.stop().await;
}
