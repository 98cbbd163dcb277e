//! How a node comes to its place in a cluster: it has one already, makes one of its own, or is given one.
//!
//! Owns: which of the three it is, and that it is exactly one. Never: a cluster made where somebody else could have
//! meant the node for another one (see docs/decisions/0009).

use super::house::FrontDoors;
use crate::config::Settings;
use kunci_replica::{Member, OpenError, PeerDoor, Replica, ReplicaConfig};
use std::net::SocketAddr;
use tracing::info;

/// A node whose doors are open.
pub(super) struct Beginning<'a> {
    pub(super) settings: &'a Settings,
    pub(super) peers: PeerDoor,
    pub(super) me: Member,
    /// They show the cluster as soon as there is one.
    pub(super) doors: &'a FrontDoors,
}

impl Beginning<'_> {
    /// Whether this node has to wait until somebody gives it a cluster.
    pub(super) fn is_awaited(&self) -> bool {
        let may_form_alone = self.settings.is_on_loopback() && !self.settings.wait_for_cluster;
        !Replica::has_identity(&self.settings.data) && !may_form_alone
    }

    /// Goes on where this node left off, or forms a cluster of its own in an empty folder.
    pub(super) async fn at_once(self) -> Result<Replica, OpenError> {
        let config = self.config();
        if !Replica::has_identity(&self.settings.data) {
            let replica = Replica::form(config, self.peers, None).await?;
            formed(self.settings, &replica);
            self.doors.enter(&replica);
            return Ok(replica);
        }
        let replica = Replica::open(config, self.peers).await?;
        let (folder, cluster) = (self.settings.data.display(), replica.cluster_id());
        info!("data folder {folder}: node {} of cluster {cluster}", replica.node_id());
        self.doors.enter(&replica);
        Ok(replica)
    }

    /// Waits until somebody wants a cluster formed with this node, or a member takes it into its own.
    pub(super) async fn wait(mut self, http: SocketAddr) -> Result<Replica, OpenError> {
        self.say_what_is_awaited(http);
        let config = self.config();
        tokio::select! {
            asked = self.doors.http.asked_to_form() => {
                match Replica::form(config, self.peers, asked.token_floor).await {
                    Ok(replica) => {
                        formed(self.settings, &replica);
                        self.doors.enter(&replica);
                        asked.formed();
                        Ok(replica)
                    }
                    Err(why) => {
                        asked.failed(format!("this node can't form a cluster, and ends: {why}"));
                        Err(why)
                    }
                }
            }
            invited = self.peers.invitation(&self.me) => {
                let replica = Replica::join(config, self.peers, invited).await?;
                info!(
                    "joined cluster {} as node {}: a learner until it has caught up, then a voter",
                    replica.cluster_id(),
                    replica.node_id()
                );
                self.doors.enter(&replica);
                Ok(replica)
            }
        }
    }

    fn config(&self) -> ReplicaConfig {
        ReplicaConfig::new(&self.settings.data, self.me.clone())
    }

    fn say_what_is_awaited(&self, http: SocketAddr) {
        info!(
            "data folder {} is empty, and this node doesn't form a cluster by itself{}: it waits. To form one with it: \
             kunci cluster init --url http://{http}. To take it into one that there is: kunci cluster add {} --url \
             http://<a member>",
            self.settings.data.display(),
            if self.settings.wait_for_cluster { "" } else { ", since other machines can reach it" },
            self.me.peer
        );
    }
}

fn formed(settings: &Settings, replica: &Replica) {
    let (folder, cluster) = (settings.data.display(), replica.cluster_id());
    info!("data folder {folder} was empty: formed cluster {cluster}, with this node as its only member");
}
