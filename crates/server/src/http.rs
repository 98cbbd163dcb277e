//! The HTTP door: JSON over HTTP/1.1, section by section what `docs/http.md` says.
//!
//! Owns: connections, their limits and times, and the way from a request's bytes to a call of [`Service`] and back,
//! also when the member that decides is another one. Never: decides anything about a lock, or lets one peer's
//! slowness hold up another.

mod accept;
mod answer;
mod audit;
mod calls;
mod cluster;
mod connection;
mod dashboard;
mod denied;
mod door;
mod events;
mod forward;
mod front;
mod health;
mod init;
mod input;
mod leases;
mod link;
mod locks;
mod measured;
mod metrics;
mod openapi;
mod policy;
mod query;
mod routes;
mod socket;

pub use init::FormAsked;
pub use openapi::openapi_json;

use crate::native::NativeDoor;
use crate::service::Service;
use crate::streams::Listener;
use front::Front;
use kunci_replica::Member;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

/// What the door allows a peer. None of it is policy: it protects one node.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// How long an acquire is held open before it is answered 202. Proxies close what is silent for 30 s.
    pub hold: Duration,
    /// For the whole head of a request, from its first byte, or from the connection's beginning.
    pub head_within: Duration,
    /// For the whole body.
    pub body_within: Duration,
    /// From one request to the next on a connection; longer than a third of the longest usual lease.
    pub idle_within: Duration,
    /// For a peer that reads nothing of what is sent to it.
    pub write_within: Duration,
    /// From one sign of life to the next in a stream of events.
    pub alive_every: Duration,
    /// How long a stop waits for answers that are under way.
    pub drain_within: Duration,
    /// Bytes of a request's head. One name of 256 bytes, percent-encoded, is 768.
    pub head_bytes_max: usize,
    /// Headers of a request.
    pub headers_max: usize,
    /// Bytes of a body.
    pub body_bytes_max: usize,
    /// Bytes of a body that renews many leases.
    pub renew_many_bytes_max: usize,
    /// Open connections; also how many calls another member may have passed on to this node at a time.
    pub connections_max: usize,
    /// Open streams of events, those of other members' clients included.
    pub streams_max: usize,
    /// Of so many requests that nobody asks to follow, one is followed through logs and spans; 0 is none.
    pub trace_one_in: u64,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            hold: Duration::from_secs(20),
            head_within: Duration::from_secs(10),
            body_within: Duration::from_secs(10),
            idle_within: Duration::from_secs(90),
            write_within: Duration::from_secs(10),
            alive_every: Duration::from_secs(10),
            drain_within: Duration::from_secs(5),
            head_bytes_max: 16 << 10,
            headers_max: 64,
            body_bytes_max: 64 << 10,
            renew_many_bytes_max: 1 << 20,
            connections_max: 10_000,
            streams_max: 1_000,
            trace_one_in: 0,
        }
    }
}

/// One node's HTTP door, for as long as its process lives. A clone is another handle to the same.
///
/// It needs no cluster to open: until [`HttpDoor::enter`] it answers for a node that belongs to none.
#[derive(Clone)]
pub struct HttpDoor {
    front: Front,
    /// Whoever asks for a cluster to be formed.
    forming: Arc<Mutex<mpsc::Receiver<FormAsked>>>,
}

impl HttpDoor {
    /// A door that isn't open yet. `me` says how this node is reached: `GET /cluster` and the header `Kunci-Leader`
    /// show it.
    pub fn new(limits: HttpLimits, me: Member) -> Self {
        let (front, forming) = Front::new(limits, me);
        Self { front, forming: Arc::new(Mutex::new(forming)) }
    }

    /// Waits until somebody asks this node, which belongs to no cluster, to form one. Safe to drop while it waits.
    pub async fn asked_to_form(&self) -> FormAsked {
        match self.forming.lock().await.recv().await {
            Some(asked) => asked,
            // The door itself holds a sender.
            None => std::future::pending().await,
        }
    }

    /// From now on this door serves the cluster that the service stands before: to its clients, those with open
    /// connections too, and to the members that pass calls on to this node. The first call counts.
    pub fn enter(&self, service: Service) {
        self.front.enter(service);
    }

    /// From now on `/metrics` shows the native door's numbers too. The first call counts.
    pub(crate) fn shows(&self, native: &NativeDoor) {
        // Once said is enough.
        self.front.native.set(native.measures()).ok();
    }

    /// Says by `/readyz` that this node is about to stop, and by `Connection: close` on every answer, so that requests
    /// go elsewhere. Everything else goes on.
    pub fn drain(&self) {
        self.front.drain();
    }

    /// Serves until `stop`, and a moment longer if nobody called [`HttpDoor::drain`] before; then lets the answers that
    /// are under way out, for a bounded time. Once.
    ///
    /// Calls that wait are ended with a retriable refusal, and streams of events end.
    pub async fn serve(self, listener: impl Listener, stop: CancellationToken) {
        let stopped = async {
            stop.cancelled().await;
            self.front.end().await;
        };
        tokio::join!(accept::run(listener, self.front.clone()), stopped);
    }
}
