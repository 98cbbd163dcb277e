//! Replicas for tests: on loopback, in folders that the test made.

#![allow(dead_code, reason = "each test binary uses its part")]

use kunci_replica::{Member, OpenError, PeerDoor, PeerSecurity, Replica, ReplicaConfig};
use std::path::Path;
use std::time::Duration;

/// What the replicas say, in the output of a failing test: RUST_LOG chooses.
pub(crate) fn log() {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    // One of the tests in this process comes first.
    drop(tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init());
}

/// A door on a free port of loopback, and a member record that names it.
pub(crate) async fn door() -> (PeerDoor, Member) {
    let loopback = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let door = PeerDoor::bind(loopback, PeerSecurity::Plain).await.unwrap();
    let peer = door.local_address().unwrap().to_string();
    let member = Member {
        http: format!("http of {peer}"),
        native: format!("native of {peer}"),
        peer,
        ..Member::default()
    };
    (door, member)
}

/// The node that lives in `config.data`, or the only one of a new cluster.
pub(crate) async fn alone(config: ReplicaConfig) -> Result<Replica, OpenError> {
    let (door, _) = door().await;
    if Replica::has_identity(&config.data) {
        Replica::open(config, door).await
    } else {
        Replica::form(config, door, None).await
    }
}

/// The same with the usual settings, once it serves.
pub(crate) async fn serving(data: &Path) -> Replica {
    let replica = alone(ReplicaConfig::new(data, Member::default())).await.unwrap();
    assert!(replica.serving(Duration::from_secs(5)).await, "the replica doesn't serve");
    replica
}
