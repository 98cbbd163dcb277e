//! One address, kept connected for as long as the client lives.
//!
//! Owns: when to connect, when to try again, and what becomes of requests meanwhile. Never: which requests come here.

use super::choice::{Health, LinkId};
use super::conversation::{Conversation, End};
use super::known::Known;
use crate::connector::Connector;
use kunci_api::native::{Outcome, Request};
use kunci_process::{sleep_until, timeout};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// How long the welcome may take on a new connection: a server that only accepts doesn't count as one.
const WELCOME_WITHIN: Duration = Duration::from_secs(1);
/// A broken connection is tried again this often.
const RETRY_EVERY: Duration = Duration::from_secs(3);
/// When every connection is broken, a request has it tried at once, but not more often than this.
const RETRY_AT_ONCE_EVERY: Duration = Duration::from_millis(100);
/// Requests that may wait for their connection; whoever comes then waits before that.
const ORDERS_MAX: usize = 4_096;

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// It wasn't sent, so it wasn't applied.
    #[error("{0}")]
    NotSent(Arc<str>),
    /// It may have been sent, so it may have been applied.
    #[error("{0}")]
    NoAnswer(Arc<str>),
}

/// The way back to whoever waits for an answer.
pub(super) type Reply = oneshot::Sender<Result<Outcome, CallError>>;

/// A request and who waits for its answer.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) request: Request,
    pub(super) reply: Reply,
}

impl Order {
    pub(super) fn fail(self, error: CallError) {
        // Whoever has stopped waiting doesn't want to know.
        let _ = self.reply.send(Err(error));
    }
}

/// A handle to one kept connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(super) id: LinkId,
    pub(super) address: Arc<str>,
    orders: mpsc::Sender<Order>,
    standing: Arc<Standing>,
}

/// How the connection stands, for everybody to see.
#[derive(Debug)]
pub(super) struct Standing {
    health: AtomicU8,
    /// When the server was last heard on it.
    heard: Mutex<Instant>,
    /// Somebody waited in vain for an answer to what was sent then.
    doubted: watch::Sender<Option<Instant>>,
    /// Counts changes of health.
    pub(super) turns: watch::Sender<u64>,
    /// Why it was down last.
    why: Mutex<Option<Arc<str>>>,
}

impl Standing {
    fn new() -> Self {
        Self {
            health: AtomicU8::new(Health::Connecting as u8),
            heard: Mutex::new(kunci_process::now()),
            doubted: watch::Sender::new(None),
            turns: watch::Sender::new(0),
            why: Mutex::new(None),
        }
    }

    fn health(&self) -> Health {
        match self.health.load(Ordering::Acquire) {
            up if up == Health::Up as u8 => Health::Up,
            connecting if connecting == Health::Connecting as u8 => Health::Connecting,
            _ => Health::Down,
        }
    }

    pub(super) fn set(&self, health: Health) {
        self.health.store(health as u8, Ordering::Release);
        self.turns.send_modify(|turns| *turns += 1);
    }

    fn set_down(&self, why: &Arc<str>) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
        self.set(Health::Down);
    }

    pub(super) fn heard_now(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = kunci_process::now();
    }

    pub(super) fn heard(&self) -> Instant {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn doubts(&self) -> watch::Receiver<Option<Instant>> {
        self.doubted.subscribe()
    }
}

impl Link {
    /// Starts to keep a connection to `address`, until `stop`.
    pub(super) fn start(
        id: LinkId,
        address: Arc<str>,
        connector: Arc<dyn Connector>,
        known: Arc<Known>,
        stop: CancellationToken,
    ) -> Self {
        let (orders, to_send) = mpsc::channel(ORDERS_MAX);
        let standing = Arc::new(Standing::new());
        let keeper = LinkKeeper { address: address.clone(), connector, known, standing: standing.clone() };
        kunci_process::spawn(async move { stop.run_until_cancelled(keeper.run(to_send)).await });
        Self { id, address, orders, standing }
    }

    pub(super) fn health(&self) -> Health {
        self.standing.health()
    }

    /// Returns once the connection is up, or was tried in vain.
    pub(super) async fn settled(&self) -> Health {
        let mut turns = self.standing.turns.subscribe();
        while self.health() == Health::Connecting {
            if turns.changed().await.is_err() {
                return Health::Down;
            }
        }
        self.health()
    }

    /// Why the connection was down last, in words.
    pub(super) fn why(&self) -> Option<Arc<str>> {
        self.standing.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a request and waits for its answer. Dropped: what wasn't sent yet isn't sent any more.
    pub(super) async fn call(
        &self,
        request: Request,
        within: Option<Duration>,
    ) -> Result<Outcome, CallError> {
        let sent_at = kunci_process::now();
        let (reply, answer) = oneshot::channel();
        let answered = async {
            if self.orders.send(Order { request, reply }).await.is_err() {
                return Err(CallError::NotSent("the client is closed".into()));
            }
            answer.await.unwrap_or_else(|_| Err(CallError::NoAnswer("the client is closed".into())))
        };
        let Some(within) = within else { return answered.await };
        match timeout(within, answered).await {
            Ok(answer) => answer,
            Err(_) => {
                self.doubt(sent_at);
                Err(CallError::NoAnswer(format!("no answer from {} within {within:?}", self.address).into()))
            }
        }
    }

    /// Gives the connection up when it has been silent since `sent_at`: the server accepts and is mute.
    fn doubt(&self, sent_at: Instant) {
        if self.standing.heard() <= sent_at && self.health() == Health::Up {
            self.standing.set(Health::Down);
            self.standing.doubted.send_replace(Some(sent_at));
        }
    }
}

struct LinkKeeper {
    address: Arc<str>,
    connector: Arc<dyn Connector>,
    known: Arc<Known>,
    standing: Arc<Standing>,
}

impl LinkKeeper {
    async fn run(self, mut orders: mpsc::Receiver<Order>) {
        let mut first = None;
        loop {
            self.standing.set(Health::Connecting);
            let began_at = kunci_process::now();
            let (why, not_before): (Arc<str>, _) = match self.open().await {
                Ok(conversation) => {
                    self.known.up();
                    self.standing.set(Health::Up);
                    let end = conversation.run(first.take(), &mut orders).await;
                    self.known.down(&self.address);
                    match end {
                        End::Unwanted => return,
                        End::Broken(why) => {
                            let why = format!("the connection to {} broke: {why}", self.address).into();
                            // One that lasted may be made again at once.
                            (why, began_at + RETRY_AT_ONCE_EVERY)
                        }
                    }
                }
                Err(why) => {
                    let why = format!("can't connect to {}: {why}", self.address).into();
                    (why, kunci_process::now() + RETRY_AT_ONCE_EVERY)
                }
            };
            tracing::debug!("{why}");
            self.standing.set_down(&why);
            if not_before > kunci_process::now() {
                // All that came for this try have had it.
                let queued = std::iter::from_fn(|| orders.try_recv().ok());
                first.take().into_iter().chain(queued).for_each(|order| {
                    order.fail(CallError::NotSent(why.clone()));
                });
            }
            match self.rest(&mut orders, &why, not_before).await {
                Rest::Over(order) => first = order,
                Rest::Unwanted => return,
            }
        }
    }

    async fn open(&self) -> Result<Conversation, String> {
        let connecting = timeout(CONNECT_WITHIN, self.connector.connect(&self.address)).await;
        let stream = match connecting {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err(format!("no connection within {CONNECT_WITHIN:?}")),
        };
        let (conversation, welcome) =
            timeout(WELCOME_WITHIN, Conversation::open(stream, self.standing.clone()))
                .await
                .map_err(|_| format!("connected, and no welcome within {WELCOME_WITHIN:?}"))??;
        self.known.welcomed(&self.address, welcome)?;
        Ok(conversation)
    }

    /// Waits before the next try. A request that comes after `not_before` has it tried at once; an earlier one is
    /// refused.
    async fn rest(&self, orders: &mut mpsc::Receiver<Order>, why: &Arc<str>, not_before: Instant) -> Rest {
        let retry_at = kunci_process::now() + RETRY_EVERY;
        loop {
            tokio::select! {
                biased;
                () = sleep_until(retry_at) => return Rest::Over(None),
                order = orders.recv() => match order {
                    None => return Rest::Unwanted,
                    // Whoever has stopped waiting needs no connection.
                    Some(order) if order.reply.is_closed() => {}
                    Some(order) if kunci_process::now() >= not_before => return Rest::Over(Some(order)),
                    Some(order) => order.fail(CallError::NotSent(why.clone())),
                },
            }
        }
    }
}

enum Rest {
    Over(Option<Order>),
    /// Nobody can ask for anything any more.
    Unwanted,
}
