//! The HTTP door: JSON over HTTP/1.1, section by section what `docs/http.md` says.
//!
//! Owns: connections, their limits and times, and the way from a request's bytes to a call of [`Service`] and back.
//! Never: decides anything about a lock, or lets one peer's slowness hold up another.

mod accept;
mod answer;
mod cluster;
mod connection;
mod door;
mod events;
mod health;
mod input;
mod leases;
mod locks;
mod metrics;
mod openapi;
mod policy;
mod query;
mod routes;
mod socket;

pub use openapi::openapi_json;

use crate::service::Service;
use std::time::Duration;
use tokio::net::TcpListener;
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
    /// Open connections.
    pub connections_max: usize,
    /// Open streams of events.
    pub streams_max: usize,
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
        }
    }
}

/// Serves until `stop`, then lets the answers that are under way out, for a bounded time.
///
/// Calls that wait are ended with a retriable refusal, and streams of events end.
pub async fn serve(listener: TcpListener, service: Service, limits: HttpLimits, stop: CancellationToken) {
    accept::run(listener, door::Door::new(service, limits, stop)).await;
}
