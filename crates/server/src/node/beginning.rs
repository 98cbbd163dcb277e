//! How a node comes to its place in a cluster: it has one already, makes one of its own, or is given one.
//!
//! Owns: which of the three it is, and that it is exactly one. Never: a cluster made where somebody else could have
//! meant the node for another one (see docs/decisions/0009).

use super::ground::Founding;
use super::house::FrontDoors;
use kunci_replica::{OpenError, PeerDoor, Replica, ReplicaConfig, Storage};
use std::net::SocketAddr;
use std::path::Path;
use tracing::info;

/// A node whose doors are open.
pub(super) struct Beginning<'a> {
    pub(super) storage: Storage,
    pub(super) config: ReplicaConfig,
    pub(super) founding: Founding,
    pub(super) peers: PeerDoor,
    /// They show the cluster as soon as there is one.
    pub(super) doors: &'a FrontDoors,
}

impl Beginning<'_> {
    /// Whether this node has to wait until somebody gives it a cluster.
    pub(super) fn is_awaited(&self) -> bool {
        !self.has_identity() && self.founding != Founding::AtOnce
    }

    /// Goes on where this node left off, or forms a cluster of its own in an empty folder.
    pub(super) async fn at_once(self) -> Result<Replica, OpenError> {
        let data = self.config.data.clone();
        if !self.has_identity() {
            let replica = Replica::form_on(self.storage, self.config, self.peers, None).await?;
            formed(&data, &replica);
            self.doors.enter(&replica);
            return Ok(replica);
        }
        let replica = Replica::open_on(self.storage, self.config, self.peers).await?;
        let (folder, cluster) = (data.display(), replica.cluster_id());
        info!("data folder {folder}: node {} of cluster {cluster}", replica.node_id());
        self.doors.enter(&replica);
        Ok(replica)
    }

    /// Waits until somebody wants a cluster formed with this node, or a member takes it into its own.
    pub(super) async fn wait(self, http: SocketAddr) -> Result<Replica, OpenError> {
        self.say_what_is_awaited(http);
        let Self { storage, config, mut peers, doors, .. } = self;
        let (data, me) = (config.data.clone(), config.member.clone());
        tokio::select! {
            biased;
            asked = doors.http.asked_to_form() => {
                match Replica::form_on(storage, config, peers, asked.token_floor).await {
                    Ok(replica) => {
                        formed(&data, &replica);
                        doors.enter(&replica);
                        asked.formed();
                        Ok(replica)
                    }
                    Err(why) => {
                        asked.failed(format!("this node can't form a cluster, and ends: {why}"));
                        Err(why)
                    }
                }
            }
            invited = peers.invitation(&me) => {
                let replica = Replica::join_on(storage, config, peers, invited).await?;
                info!(
                    "joined cluster {} as node {}: a learner until it has caught up, then a voter",
                    replica.cluster_id(),
                    replica.node_id()
                );
                doors.enter(&replica);
                Ok(replica)
            }
        }
    }

    fn has_identity(&self) -> bool {
        Replica::has_identity_on(&self.storage, &self.config.data)
    }

    fn say_what_is_awaited(&self, http: SocketAddr) {
        info!(
            "data folder {} is empty, and this node doesn't form a cluster by itself{}: it waits. To form one with it: \
             kunci cluster init --url http://{http}. To take it into one that there is: kunci cluster add {} --url \
             http://<a member>",
            self.config.data.display(),
            if self.founding == Founding::WhenAsked { "" } else { ", since other machines can reach it" },
            self.config.member.peer
        );
    }
}

fn formed(data: &Path, replica: &Replica) {
    let (folder, cluster) = (data.display(), replica.cluster_id());
    info!("data folder {folder} was empty: formed cluster {cluster}, with this node as its only member");
}
