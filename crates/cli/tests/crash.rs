//! A node that is killed at any moment loses nothing that it acknowledged.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]
#![expect(clippy::disallowed_methods, reason = "the test bounds itself by the machine's clock")]

mod node;

use node::{Node, free_port};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Starts a node on a port and waits until it serves.
fn start_on(data: &Path, port: u16) -> Node {
    let mut node = Node::spawn(data, port, &["--peer", "127.0.0.1:0"]);
    for _ in 0..200 {
        if let Ok((200, _)) = node.call("GET", "/readyz", None) {
            return node;
        }
        let ended = node.ended();
        assert!(ended.is_none(), "the node ended at once: {ended:?}\n{}", node.words());
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the node doesn't serve after 10 s:\n{}", node.words());
}

const CLIENTS: usize = 8;
const KILLS: usize = 10;

/// What one client was told, by request id.
#[derive(Default)]
struct Told {
    grants: BTreeMap<String, Value>,
    released: BTreeMap<String, Value>,
    unknown: u64,
}

/// Acquires names of its own until told to stop; releases every second one.
fn client(number: usize, http: SocketAddr, told: &Mutex<Told>, stop: &AtomicBool) {
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let id = format!("c{number}-{turn}");
        let body =
            json!({ "clientId": format!("client-{number}"), "requestId": id, "leaseDurationMs": 3_600_000 });
        let path = format!("/locks/crash%2F{id}");
        let Ok((200, grant)) = node::call(http, "POST", &format!("{path}/acquire"), Some(&body)) else {
            told.lock().unwrap().unknown += 1;
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        told.lock().unwrap().grants.insert(id.clone(), grant.clone());
        if turn % 2 == 1 {
            let lease = json!({ "leaseId": grant["leaseId"] });
            if let Ok((200, answer)) = node::call(http, "DELETE", &path, Some(&lease)) {
                assert_eq!(answer["released"], json!(true), "{id}: {answer}");
                told.lock().unwrap().released.insert(id, answer);
            }
        }
    }
}

/// Defends S2, S4 and S5 on one node, cases C103, C104 and C110: killed again and again under load, and after
/// the last start every acknowledged grant and release is there, with its token and lease id.
#[test]
fn nothing_acknowledged_is_lost_when_the_node_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let port = free_port();
    let mut node = start_on(&data, port);
    let http = node.http();
    let (told, stop) = (Arc::new(Mutex::new(Told::default())), Arc::new(AtomicBool::new(false)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (told, stop) = (Arc::clone(&told), Arc::clone(&stop));
            std::thread::spawn(move || client(number, http, &told, &stop))
        })
        .collect();
    for round in 0..KILLS {
        // Uneven, so that the kill falls into all kinds of moments, a start among them.
        std::thread::sleep(Duration::from_millis(40 + 97 * (round as u64 % 7)));
        node.kill();
        node = start_on(&data, port);
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    let told = told.lock().unwrap();
    assert!(told.grants.len() > 100, "only {} grants in {KILLS} rounds", told.grants.len());
    for (id, grant) in &told.grants {
        let owner = format!("client-{}", &id[1..id.find('-').unwrap()]);
        let body = json!({ "clientId": owner, "requestId": id, "leaseDurationMs": 3_600_000 });
        let (status, answer) =
            node.call("POST", &format!("/locks/crash%2F{id}/acquire"), Some(&body)).unwrap();
        if told.released.contains_key(id) {
            assert_eq!((status, &answer["code"]), (409, &json!("lease_ended")), "{id}: {answer}");
        } else if status == 200 {
            assert_eq!(answer["leaseId"], grant["leaseId"], "{id}");
            assert_eq!(answer["fencingToken"], grant["fencingToken"], "{id}");
            assert_eq!(answer["repeated"], json!(true), "{id}");
        } else {
            // A release whose answer was lost may have taken effect.
            assert_eq!((status, &answer["code"]), (409, &json!("lease_ended")), "{id}: {answer}");
            assert!(id.rsplit('-').next().unwrap().parse::<u64>().unwrap() % 2 == 1, "{id}: {answer}");
        }
    }
    let mut tokens: Vec<u64> =
        told.grants.values().map(|grant| grant["fencingToken"].as_u64().unwrap()).collect();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), told.grants.len(), "a token was minted twice");
    let newest = *tokens.last().unwrap();
    let body = json!({ "clientId": "last" });
    let (_, last) = node.call("POST", "/locks/after/acquire", Some(&body)).unwrap();
    assert!(last["fencingToken"].as_u64().unwrap() > newest, "{last}");
}

/// Case C108: the disk fills up under load. First acquires are refused and renewals go on; when there is no room at
/// all the node ends in plain words. Nothing refused takes effect later, and once there is room it goes on with all
/// that it acknowledged.
#[test]
fn a_full_disk_ends_the_node_in_plain_words_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(folder.path());
    let data = disk.path.join("data");
    let mut node = start_on(&data, free_port());
    let ballast = disk.path.join("ballast");
    let (mut granted, mut low, mut renewed_when_low) = (Vec::new(), 0_u64, 0_u64);
    let begun = Instant::now();
    let mut turn = 0_u64;
    let status = loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "the disk never filled up:\n{}", node.words());
        if let Some(status) = node.ended() {
            break status;
        }
        if turn == 50 {
            fill(&ballast, DISK_MIB - 40);
        }
        if low == 50 {
            // Takes all the room there is, down to the last block.
            fill(&ballast, DISK_MIB);
        }
        let id = format!("d-{turn}");
        let body = json!({ "clientId": "w", "requestId": id, "leaseDurationMs": 3_600_000, "metadata": "m".repeat(1_000) });
        match node.call("POST", &format!("/locks/{id}/acquire"), Some(&body)) {
            Ok((200, grant)) => granted.push((id, body, grant)),
            Ok((503, refused)) if refused["code"] == "storage_low" => low += 1,
            _ => {}
        }
        if let Some((id, _, grant)) = granted.first() {
            let lease = json!({ "leaseId": grant["leaseId"] });
            let renewed = node.call("POST", &format!("/locks/{id}/renew"), Some(&lease));
            renewed_when_low += u64::from(low > 0 && matches!(renewed, Ok((200, _))));
        }
        turn += 1;
    };
    assert_eq!(status.code(), Some(70), "{}", node.words());
    assert!(node.words().to_lowercase().contains("no space left"), "{}", node.words());
    assert!(low >= 50 && renewed_when_low >= 50, "{low} refused, {renewed_when_low} renewed meanwhile");
    drop(node);
    std::fs::remove_file(&ballast).unwrap();

    let node = start_on(&data, free_port());
    assert!(granted.len() >= 50, "only {} grants before the disk was full", granted.len());
    for (id, body, grant) in granted {
        let (status, answer) = node.call("POST", &format!("/locks/{id}/acquire"), Some(&body)).unwrap();
        assert_eq!((status, &answer["fencingToken"]), (200, &grant["fencingToken"]), "{id}: {answer}");
    }
}

/// Far more than the reserve that a node keeps.
const DISK_MIB: usize = 112;

/// Makes a file this large, or as large as there is room.
fn fill(file: &Path, mib: usize) {
    drop(std::fs::write(file, vec![1_u8; mib << 20]));
}

/// A file system in memory of [`DISK_MIB`]; gone when dropped.
struct SmallDisk {
    path: std::path::PathBuf,
}

impl SmallDisk {
    fn mount(folder: &Path) -> Self {
        let path = folder.join("disk");
        std::fs::create_dir(&path).unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={DISK_MIB}m"), "tmpfs"])
            .arg(&path)
            .status()
            .unwrap();
        assert!(
            mounted.success(),
            "this test mounts a small disk: run it as root, with `mount` (package mount)"
        );
        Self { path }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(std::process::Command::new("umount").arg("--lazy").arg(&self.path).status());
    }
}
