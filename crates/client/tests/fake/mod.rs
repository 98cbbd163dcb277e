//! A cluster in memory: nodes that speak the native protocol, with a weather that a test sets. On tokio's paused
//! clock an hour of it takes no time.

#![allow(dead_code, reason = "each test binary uses its part")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test helper fails by panicking")]

mod node;
mod table;

use futures::future::BoxFuture;
use kunci_api::native::{Op, Request};
use kunci_client::{BoxedStream, Client, ClientBuilder, Connector, RuntimeClock};
use node::serve;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use table::Table;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

pub(crate) const A: &str = "a:1";
pub(crate) const B: &str = "b:1";
pub(crate) const C: &str = "c:1";

/// How a node fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    /// It serves.
    Fine,
    /// Nothing listens there.
    Refused,
    /// Its name is in no DNS.
    Unnamed,
    /// It lets nobody in who has no other secret.
    Unauthorized,
    /// Connections are never made, and those that are there carry nothing.
    Blackhole,
    /// It accepts and says nothing, as a stopped process does.
    Mute,
    /// It points to the leader.
    Follows(&'static str),
    /// It refuses everything with this code.
    Refuses(&'static str),
    /// It refuses everything with this code, after some time.
    Hesitates(&'static str, Duration),
}

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The connection breaks before anything is applied.
    Cut,
    /// Applied; the connection breaks instead of an answer.
    AnswerLost,
    /// Applied; no answer ever comes.
    AnswerSwallowed,
    /// Refused with this code, not applied.
    Refused(&'static str),
    /// The answer takes this long.
    Slow(Duration),
}

/// A request that reached a node.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) when: Instant,
    pub(crate) node: String,
    pub(crate) request: Request,
}

pub(crate) struct World {
    pub(crate) table: Table,
    pub(crate) weather: BTreeMap<String, Weather>,
    /// Cut together, by node.
    pub(crate) connections: BTreeMap<String, Vec<CancellationToken>>,
    pub(crate) connects: BTreeMap<String, usize>,
    pub(crate) fates: VecDeque<(Op, Fate)>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) cluster: String,
    /// Connections are closed by their server after this much time.
    pub(crate) closes_after: Option<Duration>,
    /// Renewals of locks that `me` holds get lost on their way.
    pub(crate) renewals_vanish: bool,
}

/// The cluster. A clone is another handle to the same.
#[derive(Clone)]
pub(crate) struct Fake(pub(crate) Arc<Mutex<World>>);

impl std::fmt::Debug for Fake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fake")
    }
}

impl Fake {
    /// Nodes A, B and C; A leads.
    pub(crate) fn three() -> Self {
        let fake = Self::with(&[A, B, C]);
        fake.weather(B, Weather::Follows(A));
        fake.weather(C, Weather::Follows(A));
        fake
    }

    /// A node alone.
    pub(crate) fn one() -> Self {
        Self::with(&[A])
    }

    fn with(nodes: &[&str]) -> Self {
        let weather = nodes.iter().map(|node| ((*node).to_owned(), Weather::Fine)).collect();
        Self(Arc::new(Mutex::new(World {
            table: Table::default(),
            weather,
            connections: BTreeMap::new(),
            connects: BTreeMap::new(),
            fates: VecDeque::new(),
            seen: Vec::new(),
            cluster: "one".to_owned(),
            closes_after: None,
            renewals_vanish: false,
        })))
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    pub(crate) fn weather(&self, node: &str, weather: Weather) {
        self.world().weather.insert(node.to_owned(), weather);
    }

    pub(crate) fn all(&self, weather: &Weather) {
        for node in [A, B, C] {
            if self.world().weather.contains_key(node) {
                self.weather(node, weather.clone());
            }
        }
    }

    /// `node` leads, and the others point to it.
    pub(crate) fn lead(&self, node: &'static str) {
        for other in [A, B, C] {
            let weather = if other == node { Weather::Fine } else { Weather::Follows(node) };
            self.weather(other, weather);
        }
    }

    /// Breaks every connection to a node.
    pub(crate) fn cut(&self, node: &str) {
        for connection in self.world().connections.remove(node).unwrap_or_default() {
            connection.cancel();
        }
    }

    pub(crate) fn cut_all(&self) {
        for node in [A, B, C] {
            self.cut(node);
        }
    }

    /// The node's process dies.
    pub(crate) fn kill(&self, node: &str) {
        self.weather(node, Weather::Refused);
        self.cut(node);
    }

    /// What becomes of the next request of this kind.
    pub(crate) fn next(&self, op: Op, fate: Fate) {
        self.world().fates.push_back((op, fate));
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        Client::builder().clock(Arc::new(RuntimeClock::new())).connector(Arc::new(self.clone()))
    }

    pub(crate) async fn client(&self) -> Client {
        let nodes: Vec<String> = self.world().weather.keys().cloned().collect();
        self.builder().owner("me").connect(nodes).await.unwrap()
    }

    pub(crate) fn holder(&self, resource: &str) -> Option<String> {
        self.world().table.holder(resource)
    }

    /// Somebody else takes the resource and keeps it for this long.
    pub(crate) fn taken_by_another(&self, resource: &str, ttl: Duration) {
        Table::take(&self.0, resource, "another", ttl);
    }

    /// Ends whatever lease there is.
    pub(crate) fn end(&self, resource: &str, how: &'static str) {
        self.world().table.end(resource, how);
    }

    pub(crate) fn waiters(&self, resource: &str) -> Vec<String> {
        self.world().table.waiters(resource)
    }

    /// How many requests of that kind were seen.
    pub(crate) fn count(&self, op: Op) -> usize {
        self.world().seen.iter().filter(|seen| seen.request.subject().op == op).count()
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !is_so(self) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(120), waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
    }
}

impl Connector for Fake {
    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxedStream>> {
        Box::pin(async move {
            let weather = {
                let mut world = self.world();
                *world.connects.entry(address.to_owned()).or_default() += 1;
                world.weather.get(address).cloned().unwrap_or(Weather::Refused)
            };
            match weather {
                Weather::Refused => return Err(io::ErrorKind::ConnectionRefused.into()),
                Weather::Unnamed => return Err(io::Error::other("failed to lookup address information")),
                Weather::Blackhole => std::future::pending::<()>().await,
                _ => {}
            }
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            let cut = CancellationToken::new();
            let mut world = self.world();
            world.connections.entry(address.to_owned()).or_default().push(cut.clone());
            if let Some(after) = world.closes_after {
                let cut = cut.clone();
                tokio::spawn(async move {
                    sleep(after).await;
                    cut.cancel();
                });
            }
            drop(world);
            let (fake, node) = (self.clone(), address.to_owned());
            tokio::spawn(async move { cut.run_until_cancelled(serve(fake, node, theirs)).await });
            Ok(Box::new(ours) as BoxedStream)
        })
    }
}
