//! A reverse proxy that compares fencing tokens in front of any HTTP service.
//!
//! Owns: a process's life: gate, listeners, stop. Never: the decision; proxy and layer share it.

mod admin;
mod body;
mod connection;
mod doubt;
mod exchange;
mod head;
mod rules;
mod settings;
mod traffic;

pub use settings::{LogFormat, Settings, SettingsError};

use crate::gate::{AdmitError, FileGate, OpenError};
use crate::passage::{Passages, Times};
use crate::report::{InvalidUrl, Reporter, reporter};
use connection::Front;
use doubt::Doubt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{io, pin::Pin};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use traffic::Traffic;

/// How long taking connections rests when the system refuses one.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// Why a proxy didn't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The gate can't be opened.
    #[error(transparent)]
    Gate(#[from] OpenError),
    /// The floor can't be put on disk.
    #[error("raise the gate's floor: {0}")]
    Floor(AdmitError),
    /// An address can't be listened at.
    #[error("listen at {address}: {source}; is something else there?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The note that says whether the last stop was clean.
    #[error("note in the gate's folder that a proxy runs: {0}")]
    Note(io::Error),
    /// Where rejections are to be reported.
    #[error("report_to: {0}")]
    Report(#[from] InvalidUrl),
}

/// How a proxy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every request had its end.
    Clean,
    /// Something may still have an effect on the protected side; the next start takes that into account.
    Unfinished,
}

/// A proxy that listens.
pub struct Proxy {
    front: Arc<Front>,
    listener: TcpListener,
    admin: Option<TcpListener>,
    doubt: Doubt,
    reports: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Proxy {
    /// Opens the gate and begins to listen.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let gate = FileGate::open_keeping(&settings.gate, settings.limits.resources_max)?;
        if let Some(floor) = settings.gate_floor {
            let forgotten = gate.raise_floor(floor).map_err(StartError::Floor)?;
            tracing::info!(%floor, forgotten, "no token below the floor is admitted");
        }
        let reports = (!settings.report_to.is_empty()).then(|| reporter(&settings.report_to)).transpose()?;
        let (reporter, reports): (Option<Reporter>, _) = match reports {
            Some((reporter, sending)) => (Some(reporter), Some(Box::pin(sending) as Pin<Box<_>>)),
            None => (None, None),
        };
        let listener = listen(settings.listen).await?;
        let admin = match settings.admin {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let doubt = Doubt::begin(&settings.gate).map_err(StartError::Note)?;
        let times = Times { drain: settings.times.drain, settle: settings.times.settle };
        let passages = if doubt.is_there() {
            let settle_ms = settings.times.settle.as_millis();
            tracing::warn!(
                settle_ms,
                "the proxy before this one didn't end cleanly: for so long, newer tokens wait for what it may have left on \
                 the way"
            );
            Passages::in_doubt(gate, times)
        } else {
            Passages::new(gate, times)
        };
        let front = Arc::new(Front::new(settings, passages, Traffic::default(), reporter));
        Ok(Self { front, listener, admin, doubt, reports })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system doesn't say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where its metrics are, if there is such a place.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(|admin| admin.local_addr().ok())
    }

    /// Serves until `stop`; then takes no more connections, and waits for what is on the way, for a bounded time.
    pub async fn run(mut self, stop: impl Future<Output = ()> + Send) -> Ended {
        let (stopping, cut) = (CancellationToken::new(), CancellationToken::new());
        let connections = TaskTracker::new();
        let reports = self.reports.take().map(tokio::spawn);
        let admin = self.admin.take().map(|admin| tokio::spawn(admin::serve(admin, Arc::clone(&self.front))));
        let room = Arc::new(Semaphore::new(self.front.settings.limits.connections_max));
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = stop.as_mut() => break,
                accepted = next(&self.listener, &room) => accepted,
            };
            let Some((stream, peer, permit)) = accepted else { continue };
            let serving = connection::serve(stream, peer, Arc::clone(&self.front), stopping.clone());
            let cut = cut.clone();
            connections.spawn(async move {
                let _permit = permit;
                tokio::select! {
                    () = serving => {}
                    () = cut.cancelled() => {}
                }
            });
        }
        drop(self.listener);
        stopping.cancel();
        connections.close();
        self.front.exchanges.close();
        let all_over = async {
            connections.wait().await;
            self.front.exchanges.wait().await;
        };
        if timeout(self.front.settings.times.stop, all_over).await.is_err() {
            let open = self.front.exchanges.len();
            tracing::warn!(open, "the stop doesn't wait longer for requests that are on the way");
            cut.cancel();
        }
        admin.inspect(tokio::task::JoinHandle::abort);
        reports.inspect(tokio::task::JoinHandle::abort);
        if self.front.passages.is_quiet() && self.doubt.end().is_ok() {
            return Ended::Clean;
        }
        Ended::Unfinished
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| StartError::Listen { address, source })
}

/// The next connection, once there is room for it.
async fn next(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, permit)),
        Err(error) => {
            tracing::debug!(%error, "a connection can't be taken");
            sleep(ACCEPT_REST).await;
            None
        }
    }
}
