//! `kunci dev-cluster`.

use crate::support::{
    Dev, acquire, cluster, free_base_port, holder, is_alive, kunci, signal, until, voters, words,
};
use std::net::TcpListener;

/// Defends S2 and L4, cases C33 and C50: the cluster outlives its leader, and dev-cluster neither hides nor mends that.
#[test]
fn three_nodes_from_one_command_go_on_without_their_leader() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = Dev::start(folder.path(), free_base_port(), 3);
    let body = cluster(dev.http(1)).unwrap();
    assert_eq!(voters(&body), [1, 2, 3], "{body}");
    assert_eq!(body["warnings"].as_array().map(Vec::len), Some(0), "{body}");
    let pids: Vec<u32> = (0..3).map(|index| dev.pid(index).unwrap()).collect();
    for (index, pid) in pids.iter().enumerate() {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(command.contains(&format!("dev/node-{index}/data")), "{command}");
        assert!(dev.words().contains(&pid.to_string()), "{}", dev.words());
    }
    let before = acquire(dev.http(0), "a", "first");

    let leader = dev.leader(&[0, 1, 2]);
    signal(pids[usize::from(leader)], "KILL");

    let others: Vec<u16> = (0..3).filter(|index| *index != leader).collect();
    let after = acquire(dev.http(others[0]), "b", "second");
    assert!(after["fencingToken"].as_u64() > before["fencingToken"].as_u64(), "{before} {after}");
    assert_eq!(until("it is known who holds a", || holder(dev.http(others[1]), "a")).0, "first");
    until("the end is told", || {
        dev.words().contains(&format!("node-{leader} ended (signal 9) and isn't started again")).then_some(())
    });
    assert!(dev.pid(leader).is_none(), "the pid file of a process that is gone");
    assert!(cluster(dev.http(leader)).is_none());

    dev.signal("TERM");
    assert_eq!(dev.wait().code(), Some(0), "{}", dev.words());
    for index in 0..3 {
        assert!(!is_alive(pids[usize::from(index)]));
        assert!(dev.pid(index).is_none());
    }
}

/// Case C50: all nodes are stopped and started again, and locks and tokens are as they were.
#[test]
fn a_second_start_goes_on_with_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let base_port = free_base_port();
    let mut dev = Dev::start(folder.path(), base_port, 3);
    let id = cluster(dev.http(0)).unwrap()["clusterId"].clone();
    let grant = acquire(dev.http(2), "a", "w");
    dev.signal("INT");
    assert_eq!(dev.wait().code(), Some(0), "{}", dev.words());

    let dev = Dev::start(folder.path(), base_port, 3);

    let body = cluster(dev.http(0)).unwrap();
    assert_eq!((&body["clusterId"], voters(&body)), (&id, vec![1, 2, 3]));
    let held = until("it is known who holds a", || holder(dev.http(1), "a"));
    assert_eq!(held, ("w".to_owned(), grant["fencingToken"].as_u64().unwrap()));
}

/// Case C86: a node whose data is gone comes back in its own place, and never under its old id.
#[test]
fn a_node_with_an_emptied_folder_comes_back_under_a_new_id() {
    let folder = tempfile::tempdir().unwrap();
    let base_port = free_base_port();
    let mut dev = Dev::start(folder.path(), base_port, 3);
    acquire(dev.http(0), "a", "w");
    dev.signal("TERM");
    dev.wait();
    std::fs::remove_dir_all(dev.of_node(2, "data")).unwrap();

    let dev = Dev::start(folder.path(), base_port, 3);

    assert_eq!(voters(&cluster(dev.http(0)).unwrap()), [1, 2, 4]);
    assert_eq!(until("it is known who holds a", || holder(dev.http(2), "a")).0, "w");
}

#[test]
fn no_node_outlives_a_dev_cluster_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = Dev::start(folder.path(), free_base_port(), 2);
    let pids: Vec<u32> = (0..2).map(|index| dev.pid(index).unwrap()).collect();

    dev.signal("KILL");
    dev.wait();

    until("the nodes are gone", || (!pids.iter().any(|pid| is_alive(*pid))).then_some(()));
}

#[test]
fn a_port_in_use_is_refused_by_its_number_before_any_node_starts() {
    let folder = tempfile::tempdir().unwrap();
    let base_port = free_base_port();
    let _taken = TcpListener::bind(("127.0.0.1", base_port + 12)).unwrap();

    let mut dev = Dev::spawn(folder.path(), base_port, 3);

    assert_eq!(dev.wait().code(), Some(1), "{}", dev.words());
    let expected = format!("port {} is needed for peers of node-1", base_port + 12);
    assert!(dev.words().contains(&expected) && dev.words().contains("--base-port"), "{}", dev.words());
    assert!(dev.pid(0).is_none());
}

#[test]
fn a_cluster_has_one_to_nine_nodes() {
    for line in ["dev-cluster --nodes 0", "dev-cluster --nodes 10", "dev-cluster --base-port 65530"] {
        let output = kunci(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", words(&output));
    }
}
