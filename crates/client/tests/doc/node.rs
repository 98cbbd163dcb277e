// A real node for the examples in the documentation, which include this file: `node::run(async |address| ..)`.
mod node {
    use kunci_replica::{Member, PeerDoor, PeerSecurity, Replica, ReplicaConfig};
    use kunci_server::native::{NativeDoor, NativeLimits};
    use kunci_server::service::Service;
    use std::time::Duration;

    /// Runs an example against a node of its own.
    pub fn run(example: impl AsyncFnOnce(String) -> Result<(), Box<dyn std::error::Error>>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let me = Member { native: address.clone(), ..Member::default() };
            let door = NativeDoor::new(NativeLimits::default(), me.clone());
            tokio::spawn(door.clone().serve(listener, tokio_util::sync::CancellationToken::new()));
            let peers = PeerDoor::bind(([127, 0, 0, 1], 0).into(), PeerSecurity::Plain).await.unwrap();
            let data = tempfile::tempdir().unwrap();
            let config = ReplicaConfig::new(data.path(), me);
            let replica = Replica::form(config, peers, None).await.unwrap();
            assert!(replica.serving(Duration::from_secs(10)).await);
            door.enter(Service::new(replica));
            example(address).await.unwrap();
        });
    }
}
