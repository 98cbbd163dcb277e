//! The node behind the door.
//!
//! Owns: who may come through, and where to. Never: decides who is a member (the roster says that).

use super::places::{Held, Places, Taken};
use super::trouble::end;
use super::{Incoming, Invited};
use crate::raft_types::Member;
use crate::transport::frame::Connection;
use crate::transport::handshake::{
    self, Answer, Hello, Invitation, Place, Purpose, Refusal, RefusalCode, VERSIONS, Welcome,
};
use crate::transport::links::BoxedStream;
use crate::transport::roster::{Me, Roster, Standing};
use crate::transport::tls::Shown;
use kunci_process::timeout;
use std::io;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// How long a peer that was let in waits for somebody to serve it.
const SERVED_WITHIN: Duration = Duration::from_millis(200);
/// How long an inviter waits, as it says in `dial.rs`, and a little more.
const ACCEPT_WITHIN: Duration = Duration::from_secs(11);

/// The node behind the door.
pub(super) enum Host {
    /// Of no cluster yet.
    New { member: Member, invitations: mpsc::Sender<Invited> },
    /// Of a cluster.
    Node(Node),
}

/// A node of a cluster.
pub(super) struct Node {
    pub(super) me: Me,
    pub(super) roster: Roster,
    /// How it is reached, unless the roster knows better.
    pub(super) member: Member,
    pub(super) to: mpsc::Sender<Incoming>,
    pub(super) places: Places,
    pub(super) closed: CancellationToken,
}

/// Where a caller may go.
pub(super) enum Way<'a> {
    Through(&'a Node, Purpose),
    AtTheDoor,
}

impl Host {
    /// Where the caller may go, and in which version of the protocol. `shown` is its certificate, with TLS.
    pub(super) fn way(&self, hello: &Hello, shown: Option<&Shown>) -> Result<(u16, Way<'_>), Refusal> {
        let (version, purpose) = understand(hello)?;
        if let Some(shown) = shown {
            shown.check_is(hello.caller.node_id).map_err(|text| {
                Refusal::new(RefusalCode::Certificate, format!("{}: {text}", hello.caller))
            })?;
        }
        let way = match (purpose, self) {
            (Purpose::Door, _) => Way::AtTheDoor,
            (_, Self::Node(node)) => {
                node.check(hello)?;
                Way::Through(node, purpose)
            }
            (_, Self::New { .. }) => {
                let text = format!("{} calls a node that isn't in a cluster yet: add it first", hello.caller);
                return Err(Refusal::new(RefusalCode::NoCluster, text));
            }
        };
        Ok((version, way))
    }

    /// Who is here.
    pub(super) fn card(&self) -> (Option<Place>, Member) {
        match self {
            Self::New { member, .. } => (None, member.clone()),
            Self::Node(node) => {
                let member = node.roster.member(node.me.node_id).unwrap_or_else(|| node.member.clone());
                (Some(node.me.into()), member)
            }
        }
    }

    pub(super) fn invited(
        &self,
        inviter: Place,
        Invitation { place }: Invitation,
    ) -> Result<LetIn<'_>, Refusal> {
        let invitations = match self {
            Self::New { invitations, .. } => invitations,
            Self::Node(node) => {
                let text = format!("{inviter} invites {}, which has a cluster already", Place::from(node.me));
                return Err(Refusal::new(RefusalCode::HasCluster, text));
            }
        };
        if place.cluster_id != inviter.cluster_id || place.node_id == 0 || place.node_id == inviter.node_id {
            let text = format!("{inviter} can't give the place of {place}");
            return Err(Refusal::new(RefusalCode::Other, text));
        }
        let busy = |_| Refusal::new(RefusalCode::Busy, "the node is taking up another invitation");
        Ok(LetIn::Invited(place, invitations.try_reserve().map_err(busy)?))
    }
}

impl Node {
    /// Whether the caller is a member of this cluster that wants this node.
    fn check(&self, hello: &Hello) -> Result<(), Refusal> {
        let (caller, here) = (hello.caller, Place::from(self.me));
        if caller.cluster_id != here.cluster_id {
            let text = format!(
                "{caller} calls {here}, and clusters have nothing to say to each other: check the peer addresses, \
                 and whose data folder is whose"
            );
            return Err(Refusal::new(RefusalCode::OtherCluster, text));
        }
        if hello.to != Some(here.node_id) {
            let wanted = hello.to.map_or_else(|| "no node".to_owned(), |to| format!("node {to}"));
            let text = format!(
                "node {} wants {wanted} and this is node {}: check --advertise-peer of both",
                caller.node_id, here.node_id
            );
            return Err(Refusal::new(RefusalCode::WrongNode, text));
        }
        if caller.node_id == here.node_id {
            let text = format!(
                "two nodes say that they are node {}: one of them runs on a copy of the other's data folder; stop it",
                here.node_id
            );
            return Err(Refusal::new(RefusalCode::WrongNode, text));
        }
        match self.roster.standing(caller.node_id) {
            // One that isn't known yet may have been added by entries that this node hasn't got.
            Standing::Member | Standing::Newer => Ok(()),
            Standing::Removed => {
                let text = format!(
                    "node {} was removed from cluster {}; to use its machine again, empty its data folder and add it \
                     as a new node",
                    caller.node_id, here.cluster_id
                );
                Err(Refusal::new(RefusalCode::Removed, text))
            }
        }
    }

    pub(super) async fn let_in(&self, from: u64, purpose: Purpose) -> Result<LetIn<'_>, Refusal> {
        let place = self.places.take(from).map_err(|text| Refusal::new(RefusalCode::Busy, text))?;
        match timeout(SERVED_WITHIN, self.to.reserve()).await {
            Ok(Ok(seat)) => Ok(LetIn::Node { node: self, from, purpose, place, seat }),
            Ok(Err(_)) => Err(Refusal::new(RefusalCode::Busy, "the node called is stopping")),
            Err(_) => Err(Refusal::new(RefusalCode::Busy, "the node called is behind with new connections")),
        }
    }
}

/// The version that both sides speak, and what the caller wants.
fn understand(hello: &Hello) -> Result<(u16, Purpose), Refusal> {
    let Some(version) = hello.common_version() else {
        let text = format!(
            "{} speaks versions {} to {} of the peer protocol, and the node it calls {} to {}: update the older one",
            hello.caller,
            hello.version_min,
            hello.version_max,
            VERSIONS.start(),
            VERSIONS.end()
        );
        return Err(Refusal::new(RefusalCode::Version, text));
    };
    let Some(purpose) = Purpose::from_word(&hello.purpose) else {
        let text = format!("the release of the node called knows no purpose {:?}: update it", hello.purpose);
        return Err(Refusal::new(RefusalCode::Version, text));
    };
    Ok((version, purpose))
}

/// One that gets what it wants once its welcome is out.
pub(super) enum LetIn<'a> {
    Node { node: &'a Node, from: u64, purpose: Purpose, place: Taken, seat: mpsc::Permit<'a, Incoming> },
    Invited(Place, mpsc::Permit<'a, Invited>),
}

impl LetIn<'_> {
    pub(super) fn go(self, stream: BoxedStream) {
        match self {
            Self::Node { node, from, purpose, place, seat } => {
                let stream = Box::new(Held::new(stream, &node.closed, place));
                seat.send(Incoming { from, purpose, connection: Connection::over(stream) });
            }
            Self::Invited(Place { cluster_id, node_id }, seat) => {
                let (accepted, is_accepted) = oneshot::channel();
                // It outlives the lobby, which is over with the invitation.
                kunci_process::spawn(timeout(ACCEPT_WITHIN, tell_inviter(stream, is_accepted)));
                seat.send(Invited { cluster_id, node_id, accepted });
            }
        }
    }
}

async fn tell_inviter(mut stream: BoxedStream, is_accepted: oneshot::Receiver<()>) -> io::Result<()> {
    // Dropped without a word: closing tells that.
    if is_accepted.await.is_ok() {
        let welcome = Welcome { version: *VERSIONS.end(), place: None, member: None };
        handshake::write(&mut stream, &Answer::Welcome(welcome)).await?;
        end(stream).await?;
    }
    Ok(())
}
