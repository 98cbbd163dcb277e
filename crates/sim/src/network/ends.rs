//! How the product's code comes to its streams: the seams that it has for that, over this network.
//!
//! Owns: which life of a host asks. Never: gives a dead host anything.

use super::Shared;
use super::connection::{Phase, Side};
use super::state::{DoorState, Key};
use super::stream::SimStream;
use futures::future::BoxFuture;
use kunci_replica::transport::{Arrival, Doorway, Links};
use kunci_server::Listener;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::task::Poll;

/// A host's place on the network, for one of its lives.
#[derive(Clone)]
pub struct Plug {
    shared: Arc<Shared>,
    name: String,
    incarnation: u64,
}

impl Plug {
    pub(super) const fn new(shared: Arc<Shared>, name: String, incarnation: u64) -> Self {
        Self { shared, name, incarnation }
    }

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes connections at a port from now on.
    pub fn listen(&self, port: u16) -> Door {
        self.shared.with(|state| {
            let host = state.host(&self.name);
            if let Some(host) = state.hosts.get_mut(host)
                && host.incarnation == self.incarnation
            {
                host.doors.insert(port, DoorState::default());
            }
        });
        Door { plug: self.clone(), port }
    }

    /// Connects to `address`, a `host:port`.
    ///
    /// # Errors
    /// When nobody listens there, or this host is dead.
    pub async fn connect(&self, address: &str) -> io::Result<SimStream> {
        let (name, port) = address.rsplit_once(':').ok_or(ErrorKind::InvalidInput)?;
        let port = port.parse().map_err(|_| ErrorKind::InvalidInput)?;
        let key = self.shared.with(|state| {
            let host = state.host(&self.name);
            let is_alive =
                state.hosts.get(host).is_some_and(|host| host.is_up && host.incarnation == self.incarnation);
            is_alive.then(|| state.connect(host, self.incarnation, name, port))
        });
        let key = key.ok_or(ErrorKind::NetworkDown)?;
        // Given up before it is open, it ends as one that was open does.
        let stream = SimStream::new(Arc::clone(&self.shared), key, Side::Caller);
        poll_fn(|cx| {
            self.shared.with(|state| {
                let Some(connection) = state.connections.get_mut(&key) else {
                    return Poll::Ready(Err(io::Error::from(ErrorKind::ConnectionReset)));
                };
                if let Some(why) = connection.caller.broken {
                    return Poll::Ready(Err(why.into()));
                }
                if connection.phase == Phase::Open {
                    return Poll::Ready(Ok(()));
                }
                connection.caller.writer = Some(cx.waker().clone());
                Poll::Pending
            })
        })
        .await?;
        Ok(stream)
    }
}

impl fmt::Debug for Plug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {}. life of {}", self.incarnation, self.name)
    }
}

impl Links for Plug {
    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<kunci_replica::BoxedStream>> {
        Box::pin(
            async move { Ok(Box::new(Self::connect(self, address).await?) as kunci_replica::BoxedStream) },
        )
    }
}

impl kunci_client::Connector for Plug {
    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<kunci_client::BoxedStream>> {
        Box::pin(
            async move { Ok(Box::new(Self::connect(self, address).await?) as kunci_client::BoxedStream) },
        )
    }
}

/// Where connections come in.
pub struct Door {
    plug: Plug,
    port: u16,
}

impl Door {
    fn take(&self) -> Option<Key> {
        self.plug.shared.with(|state| self.door(state)?.backlog.pop_front())
    }

    fn door<'a>(&self, state: &'a mut super::state::State) -> Option<&'a mut DoorState> {
        let host = state.host(&self.plug.name);
        let host = state.hosts.get_mut(host)?;
        if host.incarnation != self.plug.incarnation {
            return None;
        }
        host.doors.get_mut(&self.port)
    }

    fn stream(&self, key: Key) -> SimStream {
        SimStream::new(Arc::clone(&self.plug.shared), key, Side::Called)
    }

    async fn next(&self) -> SimStream {
        let key = poll_fn(|cx| {
            self.plug.shared.with(|state| {
                let Some(door) = self.door(state) else { return Poll::Pending };
                match door.backlog.pop_front() {
                    Some(key) => Poll::Ready(key),
                    None => {
                        door.waiting = Some(cx.waker().clone());
                        Poll::Pending
                    }
                }
            })
        });
        self.stream(key.await)
    }
}

impl Doorway for Door {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Arrival>> {
        Box::pin(async move {
            let stream = self.next().await;
            Ok(Arrival { from: format!("{stream:?}"), stream: Box::new(stream) })
        })
    }
}

impl Listener for Door {
    type Stream = SimStream;

    async fn accept(&mut self) -> io::Result<SimStream> {
        Ok(self.next().await)
    }

    fn left_over(self) -> Vec<SimStream> {
        std::iter::from_fn(|| self.take()).map(|key| self.stream(key)).collect()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        while let Some(key) = self.take() {
            drop(self.stream(key));
        }
        self.plug.shared.with(|state| {
            let host = state.host(&self.plug.name);
            if let Some(host) = state.hosts.get_mut(host)
                && host.incarnation == self.plug.incarnation
            {
                host.doors.remove(&self.port);
            }
        });
    }
}
