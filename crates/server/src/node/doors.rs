//! The addresses that a node listens on, taken before anything else.
//!
//! Owns: binding them, and how the node is reached through them. Never: answers anybody.

use super::ground::{Founding, Ground, Listeners};
use crate::config::Settings;
use kunci_replica::{Member, PeerDoor, PeerSecurity, PeerTls, ReplicaConfig, Storage, TlsError};
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tracing::{info, warn};

/// Why a door can't be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum DoorError {
    #[error(
        "listen for HTTP on {address}: {source}; end what listens there, or choose another address with --http"
    )]
    Http { address: SocketAddr, source: io::Error },
    #[error(
        "listen for the native protocol on {address}: {source}; end what listens there, or choose another address with \
         --native"
    )]
    Native { address: SocketAddr, source: io::Error },
    #[error(
        "listen for peers on {address}: {source}; end what listens there, or choose another address with --peer"
    )]
    Peers { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Takes the addresses.
pub(super) async fn open(settings: &Settings) -> Result<Ground<TcpListener>, DoorError> {
    let refused = |source| DoorError::Http { address: settings.http, source };
    let http = TcpListener::bind(settings.http).await.map_err(refused)?;
    let http_address = http.local_addr().map_err(refused)?;
    let refused = |source| DoorError::Native { address: settings.native, source };
    let native = TcpListener::bind(settings.native).await.map_err(refused)?;
    let native_address = native.local_addr().map_err(refused)?;
    let security = match &settings.peer_tls {
        Some(files) => PeerSecurity::Tls(PeerTls::load(&files.ca, &files.cert, &files.key)?),
        None => PeerSecurity::Plain,
    };
    let peers = PeerDoor::bind(settings.peer, security)
        .await
        .map_err(|source| DoorError::Peers { address: settings.peer, source })?;
    let me = Member {
        peer: settings.reached_peer(peers.local_address().unwrap_or(settings.peer)),
        http: settings.reached_http(http_address),
        native: settings.reached_native(native_address),
        zone: settings.zone.clone(),
        priority: settings.priority,
        replaces: None,
    };
    say(settings, http_address, native_address, &me);
    Ok(Ground {
        listeners: Listeners { http, native },
        http: http_address,
        peers,
        storage: Storage::system(),
        replica: ReplicaConfig::new(&settings.data, me),
        audit: settings.audit.clone(),
        http_limits: settings.http_limits.clone(),
        native_limits: settings.native_limits.clone(),
        founding: match (settings.wait_for_cluster, settings.is_on_loopback()) {
            (true, _) => Founding::WhenAsked,
            (false, true) => Founding::AtOnce,
            (false, false) => Founding::WhenAskedSinceReachable,
        },
    })
}

fn say(settings: &Settings, http: SocketAddr, native: SocketAddr, me: &Member) {
    let security = if settings.peer_tls.is_some() { "over TLS" } else { "in plain text" };
    info!("HTTP on {http}, reached at {}; peers at {}, {security}", me.http, me.peer);
    info!("native protocol on {native}, reached at {}", me.native);
    for (what, address) in [("HTTP", http), ("the native protocol", native)] {
        if !address.ip().is_loopback() {
            warn!(
                "{what} on {address} is open to other machines: anybody who can reach it may take and end every lock"
            );
        }
    }
    if settings.peer_tls.is_none() && !settings.peer.ip().is_loopback() {
        warn!(
            "the door for peers on {} is open to other machines without TLS: anybody who can reach it may pass for a \
             member",
            settings.peer
        );
    }
}
