//! The peer door: taking connections of other nodes.
//!
//! Owns: the listening socket, and what comes through it: connections of members, invitations for a node of no
//! cluster. Never: reads a frame.

mod first_byte;
mod host;
mod lobby;
mod places;
mod reception;
mod said;
#[cfg(test)]
mod tests;
mod trouble;

use super::dial::Dialer;
use super::frame::Connection;
use super::handshake::Purpose;
use super::links::{Doorway, Links, TcpLinks};
use super::roster::{Me, Roster};
use super::tls::{PeerSecurity, TlsError};
use crate::data_folder::ClusterId;
use crate::raft_types::Member;
use host::{Host, Node};
use places::Places;
use reception::Reception;
use said::Said;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// Where other nodes connect to, and how this node connects to them.
pub struct PeerDoor {
    doorway: Box<dyn Doorway>,
    links: Arc<dyn Links>,
    security: PeerSecurity,
    local_address: Option<SocketAddr>,
}

/// A connection whose handshake is over.
pub(crate) struct Incoming {
    /// The node at the other end.
    pub(crate) from: u64,
    pub(crate) purpose: Purpose,
    pub(crate) connection: Connection,
}

/// A place in a cluster, for a node that had none.
#[derive(Debug)]
pub struct Invited {
    /// The cluster.
    pub cluster_id: ClusterId,
    /// The id that this node gets in it.
    pub node_id: u64,
    accepted: oneshot::Sender<()>,
}

impl Invited {
    /// Tells the inviter that the place is written down.
    pub fn accept(self) {
        // It may have waited long enough.
        self.accepted.send(()).ok();
    }
}

/// Keeps the door open. Dropping it closes the door and ends every connection that came through it.
#[derive(Debug)]
pub(crate) struct DoorGuard {
    taking: AbortHandle,
    closed: CancellationToken,
}

impl Drop for DoorGuard {
    fn drop(&mut self) {
        self.closed.cancel();
        self.taking.abort();
    }
}

impl PeerDoor {
    /// A door over any kind of streams.
    pub fn new(doorway: Box<dyn Doorway>, links: Arc<dyn Links>, security: PeerSecurity) -> Self {
        Self { doorway, links, security, local_address: None }
    }

    /// Listens at a TCP address.
    ///
    /// # Errors
    /// When the address can't be listened at.
    pub async fn bind(address: SocketAddr, security: PeerSecurity) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let local_address = Some(listener.local_addr()?);
        Ok(Self {
            doorway: Box::new(listener),
            links: Arc::new(TcpLinks::default()),
            security,
            local_address,
        })
    }

    /// Where it listens, when that is TCP.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.local_address
    }

    /// The way out that belongs to this door.
    pub(crate) fn dialer(&self, me: Me, roster: Roster) -> Dialer {
        Dialer::new(Arc::clone(&self.links), self.security.clone(), me, roster)
    }

    /// Checks that the certificate, if there is one, lets this node be `node_id`.
    ///
    /// # Errors
    /// When it is for another name.
    pub(crate) fn check_is_for(&self, node_id: u64) -> Result<(), TlsError> {
        self.security.check_is_for(node_id)
    }

    /// For a node of no cluster: answers who it is, refuses everything else, and waits for an invitation. `me` is how
    /// it is reached. Safe to drop; then nobody was invited.
    pub async fn invitation(&mut self, me: &Member) -> Invited {
        let (invitations, mut invited) = mpsc::channel(1);
        let host = Host::New { member: me.clone(), invitations };
        let reception = Reception { security: self.security.clone(), host, said: Said::default() };
        tokio::select! {
            biased;
            never = lobby::run(self.doorway.as_mut(), Arc::new(reception)) => match never {},
            Some(invited) = invited.recv() => invited,
        }
    }

    /// Takes connections until the guard is dropped; each whose handshake is right goes to `to`. `member` is how this
    /// node is reached, as far as the roster doesn't know better.
    pub(crate) fn open(
        self,
        me: Me,
        roster: Roster,
        member: Member,
        to: mpsc::Sender<Incoming>,
    ) -> DoorGuard {
        let Self { mut doorway, security, .. } = self;
        let closed = CancellationToken::new();
        let places = Places::default();
        let host = Host::Node(Node { me, roster, member, to, places, closed: closed.clone() });
        let reception = Arc::new(Reception { security, host, said: Said::default() });
        let taking =
            kunci_process::spawn(async move { match lobby::run(doorway.as_mut(), reception).await {} });
        DoorGuard { taking: taking.abort_handle(), closed }
    }
}
