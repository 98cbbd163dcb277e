//! The addresses that a node listens on, taken before anything else.
//!
//! Owns: binding them, and how the node is reached through them. Never: answers anybody.

use crate::config::Settings;
use kunci_replica::{Member, PeerDoor, PeerSecurity, PeerTls, TlsError};
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tracing::{info, warn};

/// Doors that are open, with nobody behind them yet.
pub(super) struct Doors {
    /// For HTTP.
    pub(super) listener: TcpListener,
    /// Where that is.
    pub(super) address: SocketAddr,
    /// For the other members.
    pub(super) peers: PeerDoor,
    /// How this node is reached.
    pub(super) me: Member,
}

/// Why a door can't be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum DoorError {
    #[error(
        "listen for HTTP on {address}: {source}; end what listens there, or choose another address with --http"
    )]
    Http { address: SocketAddr, source: io::Error },
    #[error(
        "listen for peers on {address}: {source}; end what listens there, or choose another address with --peer"
    )]
    Peers { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Doors {
    /// Takes the addresses.
    pub(super) async fn open(settings: &Settings) -> Result<Self, DoorError> {
        let refused = |source| DoorError::Http { address: settings.http, source };
        let listener = TcpListener::bind(settings.http).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let security = match &settings.peer_tls {
            Some(files) => PeerSecurity::Tls(PeerTls::load(&files.ca, &files.cert, &files.key)?),
            None => PeerSecurity::Plain,
        };
        let peers = PeerDoor::bind(settings.peer, security)
            .await
            .map_err(|source| DoorError::Peers { address: settings.peer, source })?;
        let me = Member {
            peer: settings.reached_peer(peers.local_address().unwrap_or(settings.peer)),
            http: settings.reached_http(address),
            native: settings.reached_native(),
            zone: settings.zone.clone(),
            priority: settings.priority,
            replaces: None,
        };
        say(settings, address, &me);
        Ok(Self { listener, address, peers, me })
    }
}

fn say(settings: &Settings, http: SocketAddr, me: &Member) {
    let security = if settings.peer_tls.is_some() { "over TLS" } else { "in plain text" };
    info!("HTTP on {http}, reached at {}; peers at {}, {security}", me.http, me.peer);
    info!("native {} is noted; this version doesn't open it", settings.native);
    if !http.ip().is_loopback() {
        warn!(
            "HTTP on {http} is open to other machines: anybody who can reach it may take and end every lock"
        );
    }
    if settings.peer_tls.is_none() && !settings.peer.ip().is_loopback() {
        warn!(
            "the door for peers on {} is open to other machines without TLS: anybody who can reach it may pass for a \
             member",
            settings.peer
        );
    }
}
