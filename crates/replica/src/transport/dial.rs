//! Connecting to another node.
//!
//! Owns: the way from an address to a connection whose handshake is over, in bounded time. Never: tries again.

use super::frame::Connection;
use super::handshake::{
    self, Answer, Hello, Invitation, Place, Purpose, RefusalCode, Unreadable, VERSIONS, Welcome,
};
use super::links::{BoxedStream, Links};
use super::roster::{Me, Roster};
use super::tls::PeerSecurity;
use crate::data_folder::ClusterId;
use crate::raft_types::Member;
use kunci_process::timeout_at;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// From the first packet to the welcome: several round trips between far zones, and far below what a caller waits.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// A new node makes its data folder before it takes an invitation up.
const ACCEPT_WITHIN: Duration = Duration::from_secs(10);

/// Connects to other nodes. A clone is another handle to the same.
#[derive(Clone)]
pub(crate) struct Dialer {
    links: Arc<dyn Links>,
    security: PeerSecurity,
    me: Me,
    roster: Roster,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the dialer of {}", Place::from(self.me))
    }
}

/// Who answers at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// A node of no cluster.
    New { member: Member },
    /// A node of a cluster, this one or another.
    Node { cluster_id: ClusterId, node_id: u64, member: Member },
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// Nobody answers there, or it closed.
    #[error("{doing} {address}: {error}")]
    Broken { address: String, doing: Doing, error: io::Error },
    /// The time was over.
    #[error("{doing} {address}: no answer in time")]
    Slow { address: String, doing: Doing },
    /// Certificates that don't fit, or only one side has TLS.
    #[error("{address}: {text}")]
    Tls { address: String, text: String },
    /// It isn't the peer door of a node, or not of the node that was called.
    #[error("{address}: {text}")]
    Stranger { address: String, text: String },
    /// It said no.
    #[error("{address} refuses: {text}")]
    Refused { address: String, code: RefusalCode, text: String },
}

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Connect,
    AgreeOnTls,
    ShakeHands,
    Invite,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect to",
            Self::AgreeOnTls => "agree on TLS with",
            Self::ShakeHands => "shake hands with",
            Self::Invite => "invite the node at",
        })
    }
}

impl Dialer {
    pub(crate) fn new(links: Arc<dyn Links>, security: PeerSecurity, me: Me, roster: Roster) -> Self {
        Self { links, security, me, roster }
    }

    /// Which node calls.
    pub(crate) fn me(&self) -> Me {
        self.me
    }

    /// The members as this node knows them.
    pub(crate) fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Connects to member `to` at `address`, a `host:port`, and shakes hands, within 1 s in all.
    ///
    /// # Errors
    /// Nothing was sent for the purpose then. When the other node says that this one was removed, the roster knows
    /// it afterwards.
    pub(crate) async fn connect(
        &self,
        to: u64,
        address: &str,
        purpose: Purpose,
    ) -> Result<Connection, DialError> {
        let call = Call { dialer: self, address, until: kunci_process::now() + CONNECT_WITHIN };
        let (stream, welcome) = call.shake(to, &Hello::new(self.me, Some(to), purpose)).await?;
        let expected = Place { cluster_id: self.me.cluster_id, node_id: to };
        match welcome.place {
            Some(place) if place == expected => Ok(Connection::over(stream)),
            Some(place) => Err(call.stranger(format!("{place} answers, expected {expected}"))),
            None => Err(call.stranger(format!("a node of no cluster answers, expected {expected}"))),
        }
    }

    /// Whether the system at `address` is there and says that no process listens. Not so while nothing is heard.
    pub(crate) async fn is_refused(&self, address: &str) -> bool {
        let until = kunci_process::now() + CONNECT_WITHIN;
        match timeout_at(until, self.links.connect(address)).await {
            Ok(Err(error)) => error.kind() == io::ErrorKind::ConnectionRefused,
            Ok(Ok(_)) | Err(_) => false,
        }
    }

    /// Who is at `address`? `next_id` is the id that a new node there would get: with TLS, its certificate must be
    /// for that. Within 1 s.
    ///
    /// # Errors
    /// When that can't be told.
    pub(crate) async fn who(&self, address: &str, next_id: u64) -> Result<Who, DialError> {
        let call = Call { dialer: self, address, until: kunci_process::now() + CONNECT_WITHIN };
        let (_, welcome) = call.shake(next_id, &Hello::new(self.me, None, Purpose::Door)).await?;
        match (welcome.place, welcome.member) {
            (None, Some(member)) => Ok(Who::New { member }),
            (Some(Place { cluster_id, node_id }), Some(member)) => {
                Ok(Who::Node { cluster_id, node_id, member })
            }
            (_, None) => Err(call.stranger("it doesn't say how it is reached".to_owned())),
        }
    }

    /// Gives a new node its place in this cluster; returns once it has written that down, within 11 s.
    ///
    /// # Errors
    /// Unless it refused, it may have taken the place up: only asking again who it is tells.
    pub(crate) async fn invite(&self, address: &str, node_id: u64) -> Result<(), DialError> {
        let mut call = Call { dialer: self, address, until: kunci_process::now() + CONNECT_WITHIN };
        let (mut stream, welcome) = call.shake(node_id, &Hello::new(self.me, None, Purpose::Door)).await?;
        if let Some(place) = welcome.place {
            return Err(call.refused(RefusalCode::HasCluster, format!("it is {place} already")));
        }
        call.until = kunci_process::now() + ACCEPT_WITHIN;
        let place = Place { cluster_id: self.me.cluster_id, node_id };
        call.exchange(Doing::Invite, &mut stream, &Invitation { place }).await?;
        Ok(())
    }
}

/// One try to connect.
struct Call<'a> {
    dialer: &'a Dialer,
    address: &'a str,
    until: Instant,
}

impl Call<'_> {
    /// Connects, with TLS to the node `to`, says `hello`, and waits for the welcome.
    async fn shake(&self, to: u64, hello: &Hello) -> Result<(BoxedStream, Welcome), DialError> {
        let connecting = self.dialer.links.connect(self.address);
        let plain = self.in_time(Doing::Connect, connecting).await?;
        let plain = plain.map_err(|error| self.broken(Doing::Connect, error))?;
        let mut stream = match &self.dialer.security {
            PeerSecurity::Plain => plain,
            PeerSecurity::Tls(tls) => {
                let agreed = self.in_time(Doing::AgreeOnTls, tls.connect(plain, to)).await?;
                agreed.map_err(|error| self.broken(Doing::AgreeOnTls, error))?
            }
        };
        let welcome = self.exchange(Doing::ShakeHands, &mut stream, hello).await?;
        if !VERSIONS.contains(&welcome.version) {
            let (found, ours) = (welcome.version, VERSIONS);
            return Err(
                self.stranger(format!("it chose version {found} of the peer protocol, expected {ours:?}"))
            );
        }
        Ok((stream, welcome))
    }

    /// Sends a message and reads the answer, which must be a welcome.
    async fn exchange<T: serde::Serialize>(
        &self,
        doing: Doing,
        stream: &mut BoxedStream,
        message: &T,
    ) -> Result<Welcome, DialError> {
        // The other side may have said why it closes before it took a word: its answer counts, not this.
        let written = self.in_time(doing, handshake::write(stream, message)).await?;
        match self.in_time(doing, handshake::read(stream)).await? {
            Ok(Answer::Welcome(welcome)) => Ok(welcome),
            Ok(Answer::Refused(refusal)) => Err(self.refused(refusal.code(), refusal.text())),
            Err(Unreadable::Ended(error)) => {
                // What TLS says when it reads is more than that a write found nobody.
                let error = if error.get_ref().is_some() { error } else { written.err().unwrap_or(error) };
                Err(self.broken(doing, error))
            }
            Err(Unreadable::Tls) => Err(self.tls(
                "it talks TLS and this node doesn't: give this node --peer-ca, --peer-cert and --peer-key too"
                    .to_owned(),
            )),
            Err(other) => Err(self.stranger(other.to_string())),
        }
    }

    async fn in_time<T>(&self, doing: Doing, future: impl Future<Output = T>) -> Result<T, DialError> {
        timeout_at(self.until, future)
            .await
            .map_err(|_| DialError::Slow { address: self.address.to_owned(), doing })
    }

    fn broken(&self, doing: Doing, error: io::Error) -> DialError {
        let explained = match &self.dialer.security {
            PeerSecurity::Plain => None,
            PeerSecurity::Tls(tls) => tls.explain_as_caller(&error),
        };
        match explained {
            Some(text) => self.tls(text),
            None => DialError::Broken { address: self.address.to_owned(), doing, error },
        }
    }

    fn tls(&self, text: String) -> DialError {
        DialError::Tls { address: self.address.to_owned(), text }
    }

    fn stranger(&self, text: String) -> DialError {
        DialError::Stranger { address: self.address.to_owned(), text }
    }

    fn refused(&self, code: RefusalCode, text: String) -> DialError {
        if code == RefusalCode::Removed {
            self.dialer.roster.note_removed();
        }
        DialError::Refused { address: self.address.to_owned(), code, text }
    }
}
