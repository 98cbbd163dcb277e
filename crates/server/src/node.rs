//! One node's life: open the data folder, open the door, serve, stop.
//!
//! Owns: the order of starting and stopping, what a person is told meanwhile, and how the process ends. Never: a
//! request.

mod log;
mod signals;
mod unformed;

use crate::config::Settings;
use crate::http;
use crate::service::Service;
use kunci_replica::{Member, Replica, ReplicaConfig};
use signals::Signals;
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

/// What a process ends with that can't go on: `EX_SOFTWARE` of sysexits.
pub const EXIT_FATAL: i32 = 70;
/// How long a node may take to serve before it says that this is odd.
const SERVING_WITHIN: Duration = Duration::from_secs(10);
/// How long a stop of the replica may take before the process ends without it; its disk is as after a crash then.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// How a node ended. Why was logged already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Somebody asked it to stop, and it did.
    Stopped,
    /// It was asked twice, and ended at once, by this signal.
    AtOnce(i32),
    /// It never started.
    NotStarted,
    /// It couldn't go on.
    Failed,
}

/// Runs a node until somebody stops it.
pub async fn run(settings: &Settings) -> Ended {
    log::begin(settings.log_format, &settings.log_levels);
    end_on_panic();
    let started = match Started::new(settings).await {
        Ok(started) => started,
        Err(why) => {
            error!("{why}");
            return Ended::NotStarted;
        }
    };
    started.serve(settings).await
}

/// What is there once a node has started.
struct Started {
    signals: Signals,
    listener: TcpListener,
    /// None while the node belongs to no cluster.
    replica: Option<Replica>,
}

/// Why a node doesn't start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("catch signals: {0}")]
    Signals(std::io::Error),
    #[error(
        "listen for HTTP on {address}: {source}; end what listens there, or choose another address with --http"
    )]
    Listen { address: std::net::SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Open(#[from] kunci_replica::OpenError),
}

impl Started {
    async fn new(settings: &Settings) -> Result<Self, StartError> {
        let signals = Signals::catch().map_err(StartError::Signals)?;
        // Before the data folder: a second node by mistake shouldn't form a cluster that nobody wants.
        let listen = |source| StartError::Listen { address: settings.http, source };
        let listener = TcpListener::bind(settings.http).await.map_err(listen)?;
        let http = listener.local_addr().map_err(listen)?;
        let is_new = !has_identity(&settings.data);
        if is_new && !settings.is_on_loopback() {
            return Ok(Self { signals, listener, replica: None });
        }
        let member = Member {
            peer: settings.peer.to_string(),
            http: http.to_string(),
            native: settings.native.to_string(),
            zone: None,
        };
        let replica = Replica::open(ReplicaConfig::new(&settings.data, member)).await?;
        let (folder, cluster) = (settings.data.display(), replica.cluster_id());
        if is_new {
            info!(
                "data folder {folder} was empty: formed cluster {cluster}, with this node as its only member"
            );
        } else {
            info!("data folder {folder}: node {} of cluster {cluster}", replica.node_id());
        }
        Ok(Self { signals, listener, replica: Some(replica) })
    }

    async fn serve(mut self, settings: &Settings) -> Ended {
        let stop = CancellationToken::new();
        let address = self.listener.local_addr().unwrap_or(settings.http);
        let mut door = match &self.replica {
            Some(replica) => {
                tokio::spawn(announce(replica.clone(), address, settings.clone()));
                let service = Service::new(replica.clone());
                tokio::spawn(http::serve(self.listener, service, settings.http_limits.clone(), stop.clone()))
            }
            None => {
                unformed::say(&settings.data, address);
                tokio::spawn(unformed::serve(self.listener, stop.clone()))
            }
        };
        let replica = self.replica.as_ref();
        tokio::select! {
            signal = self.signals.next() => {
                info!("{} received: stopping; a second signal stops at once", signals::name(signal));
                tokio::select! {
                    () = stop_all(replica, &stop, &mut door) => Ended::Stopped,
                    signal = self.signals.next() => Ended::AtOnce(signal),
                }
            }
            why = failed(replica) => {
                error!("this node can't go on: {why}; nothing that was acknowledged is lost, start it again");
                Ended::Failed
            }
            ended = &mut door => {
                error!("the HTTP door ended by itself: {ended:?}");
                Ended::Failed
            }
        }
    }
}

/// Why the replica can't go on, once it can't.
async fn failed(replica: Option<&Replica>) -> String {
    match replica {
        Some(replica) => replica.failed().await,
        None => std::future::pending().await,
    }
}

/// Tells a person where the node is, and when it serves.
async fn announce(replica: Replica, http: std::net::SocketAddr, settings: Settings) {
    info!("native {} and peers {} are noted; this version opens neither", settings.native, settings.peer);
    if !http.ip().is_loopback() {
        warn!(
            "HTTP on {http} is open to other machines: anybody who can reach it may take and end every lock"
        );
    }
    if replica.serving(SERVING_WITHIN).await {
        info!("serving HTTP on http://{http}; try: kunci status demo --url http://{http}");
    } else {
        warn!(
            "HTTP is open on http://{http}, but this node doesn't lead yet; requests are refused with no_leader"
        );
    }
}

/// Ends in an order in which every open request gets its answer: the door lets them out, then the replica ends.
async fn stop_all(replica: Option<&Replica>, stop: &CancellationToken, door: &mut JoinHandle<()>) {
    stop.cancel();
    // The door bounds this itself.
    drop(door.await);
    if let Some(replica) = replica
        && timeout(STOP_WITHIN, replica.stop()).await.is_err()
    {
        warn!("the replica didn't stop within {} s: left as it is", STOP_WITHIN.as_secs());
        return;
    }
    info!("stopped");
}

/// Whether a node lives in the folder already.
fn has_identity(data: &Path) -> bool {
    data.join("identity").exists()
}

/// A panic is a bug, and a node with a bug may not go on: half of it would look alive.
fn end_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        error!("this node has a bug and ends: {panic}");
        std::process::exit(EXIT_FATAL);
    }));
}
