//! The way in.
//!
//! Owns: what a client is made of. Never: anything about one lock.

use crate::clock::{BootClock, Clock};
use crate::connector::{Connector, TcpConnector};
use crate::decide;
use crate::error::{Certainty, Error, ErrorKind, Retry};
use crate::keeper::{self, Order, Orders};
use crate::links::Links;
use crate::lock::LockRequest;
use crate::random::{Randomness, SystemRandomness};
use crate::renewer::Key;
use crate::several::LocksRequest;
use crate::status::{self, Status};
use kunci_api::native::{Outcome, Request};
use kunci_process::timeout;
use kunci_types::Owner;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// For this long a request is repeated while there is no leader or no quorum.
const PATIENCE_DEFAULT: Duration = Duration::from_secs(5);
/// How long a client that closes waits for acquires to notice.
const ENDS_WITHIN: Duration = Duration::from_millis(200);

/// A client of one cluster. A clone is another handle to the same connections and the same renewing task.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/node.inc"));
/// # fn main() { node::run(async |address| {
/// use kunci_client::{Client, Status};
/// use std::time::Duration;
///
/// let client = Client::builder().owner("worker-7").connect([address]).await?;
/// let lock = client.lock("orders/42").wait(Duration::from_secs(10)).acquire().await?;
///
/// let status = client.status("orders/42").await?;
/// assert!(matches!(status, Status::Held { holder, .. } if holder == "worker-7"));
///
/// lock.release().await?;
/// # Ok(()) }) }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    core: Arc<Core>,
}

/// What every request and lock of a client shares.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) links: Links,
    pub(crate) orders: Orders,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) randomness: Arc<dyn Randomness>,
    pub(crate) owner: Owner,
    pub(crate) patience: Duration,
    pub(crate) outage: Duration,
    pub(crate) answer_within: Option<Duration>,
    /// No new lock is asked for.
    pub(crate) closed: CancellationToken,
    /// Acquires that are under way.
    pub(crate) acquiring: TaskTracker,
    keys: AtomicU64,
}

impl Core {
    pub(crate) fn next_key(&self) -> Key {
        self.keys.fetch_add(1, Ordering::Relaxed)
    }
}

impl Client {
    /// Connects to the native doors of a cluster, each as `host:port`, with everything else as
    /// [`Client::builder`] has it. One address is enough to find the leader; several survive the loss of one.
    ///
    /// # Errors
    /// When none of them answers, or an address isn't one.
    pub async fn connect(addresses: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, Error> {
        Self::builder().connect(addresses).await
    }

    /// Begins to choose.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Begins to ask for a lock on `resource`: 1 to 256 bytes of UTF-8 in NFC.
    pub fn lock(&self, resource: impl AsRef<str>) -> LockRequest {
        LockRequest::new(self, resource.as_ref())
    }

    /// Begins to ask for several locks, all or none.
    pub fn locks(&self, resources: impl IntoIterator<Item = impl Into<String>>) -> LocksRequest {
        LocksRequest::new(self, resources)
    }

    /// How a resource stands, as everybody may see it.
    ///
    /// # Errors
    /// When no server answers within 5 s.
    pub async fn status(&self, resource: impl AsRef<str>) -> Result<Status, Error> {
        status::read(&self.core.links, resource.as_ref()).await
    }

    /// Sends one request of the native protocol and repeats it until a server has decided it: for tools that show
    /// answers as they are. What is granted this way isn't renewed, and nothing is taken back when this is dropped.
    ///
    /// Name a request id in an acquire, or a retry may be granted a second time.
    ///
    /// # Errors
    /// When no server can be reached, or none decides while the client's patience lasts. A refusal that decides is an
    /// outcome.
    pub async fn ask(&self, request: &Request) -> Result<Outcome, Error> {
        decide::decided(&self.core, request).await.map(|(outcome, _)| outcome)
    }

    /// The id of the cluster that was connected last. It changes when another cluster answers under the same addresses.
    pub fn cluster(&self) -> Option<String> {
        self.core.links.cluster()
    }

    /// Refuses new locks, ends the acquires that wait, and returns when what goes on in the background is done: releases of
    /// dropped locks and cancellations, which take 10 s at most. Locks that are still held stay held and renewed.
    pub async fn close(&self) {
        self.core.closed.cancel();
        self.core.acquiring.close();
        // An acquire that its owner doesn't poll can't end, and mustn't hold this up.
        let _ = timeout(ENDS_WITHIN, self.core.acquiring.wait()).await;
        let (reply, done) = oneshot::channel();
        if self.core.orders.send(Order::Settle { reply }).is_ok() {
            // No keeper, nothing that goes on.
            let _ = done.await;
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

/// Chooses how a client works.
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `connect`"]
pub struct ClientBuilder {
    owner: Option<String>,
    patience: Duration,
    outage: Duration,
    answer_within: Option<Duration>,
    clock: Arc<dyn Clock>,
    connector: Arc<dyn Connector>,
    randomness: Arc<dyn Randomness>,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            owner: None,
            patience: PATIENCE_DEFAULT,
            outage: Duration::ZERO,
            answer_within: None,
            clock: Arc::new(BootClock),
            connector: Arc::new(TcpConnector),
            randomness: Arc::new(SystemRandomness),
        }
    }
}

impl ClientBuilder {
    /// Who holds this client's locks, for people to read: 1 to 128 bytes. Without it host name and process id.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// For how long an acquire is repeated while servers answer that they can't decide: an election, a lost quorum.
    /// Without it 5 s.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// For how long an acquire goes on, under its request id, while no server can be reached at all: a single node that
    /// starts again. Without it no longer than it takes to try every connection.
    pub fn through_outages(mut self, outage: Duration) -> Self {
        self.outage = outage;
        self
    }

    /// How long the answer to a renewal may take before another connection is tried. It has to fit into the TTL of each
    /// lock. Without it a sixth of the TTL, from 100 ms to 5 s.
    pub fn answer_within(mut self, answer_within: Duration) -> Self {
        self.answer_within = Some(answer_within);
        self
    }

    /// Counts leases by another clock: for simulators.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Makes connections another way: for simulators, or through a tunnel.
    pub fn connector(mut self, connector: Arc<dyn Connector>) -> Self {
        self.connector = connector;
        self
    }

    /// Draws request ids and jitter from another source: for simulators, which have to repeat a run.
    pub fn randomness(mut self, randomness: Arc<dyn Randomness>) -> Self {
        self.randomness = randomness;
        self
    }

    /// Connects, inside a tokio runtime whose I/O and time are on. Locks are renewed by that runtime.
    ///
    /// # Errors
    /// When no address answers, or what was chosen can't be.
    pub async fn connect(
        self,
        addresses: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Client, Error> {
        let addresses: Vec<String> = addresses.into_iter().map(Into::into).collect();
        check_addresses(&addresses)?;
        let owner = self.owner.unwrap_or_else(default_owner);
        let owner = Owner::parse(&owner).map_err(|error| Error::invalid(error.to_string()))?;
        let links = Links::start(&addresses, self.clock.clone(), self.connector);
        if let Err(why) = links.any_up().await {
            let detail = format!("no server can be reached: {why}");
            let retry = Retry::After(Duration::from_secs(1));
            return Err(Error::new(ErrorKind::Unreachable, Certainty::NotApplied, retry, detail));
        }
        let orders = keeper::start(links.clone(), self.clock.clone());
        Ok(Client {
            core: Arc::new(Core {
                links,
                orders,
                clock: self.clock,
                randomness: self.randomness,
                owner,
                patience: self.patience,
                outage: self.outage,
                answer_within: self.answer_within,
                closed: CancellationToken::new(),
                acquiring: TaskTracker::new(),
                keys: AtomicU64::new(0),
            }),
        })
    }
}

fn check_addresses(addresses: &[String]) -> Result<(), Error> {
    if addresses.is_empty() {
        return Err(Error::invalid("no address was given: expected at least one host:port"));
    }
    for address in addresses {
        let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        if port.is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
            let detail = format!("{address} is no address: expected host:port, such as 127.0.0.1:7401");
            return Err(Error::invalid(detail));
        }
    }
    Ok(())
}

/// `host-pid`: tells a person which process holds the lock.
fn default_owner() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host: String = host.chars().filter(char::is_ascii_graphic).take(100).collect();
    let host = if host.is_empty() { "unnamed".to_owned() } else { host };
    format!("{host}-{}", std::process::id())
}
