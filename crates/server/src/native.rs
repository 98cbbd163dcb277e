//! The native door: lines of text over TCP, many requests under way on one connection, as `docs/protocol.md` says.
//!
//! Owns: connections, their limits and times, and the way from a line to a call of [`Service`] and back. Never: decides
//! anything about a lock, passes a call on to another member (it names the leader instead), or lets one peer's slowness
//! hold up another.

mod accept;
mod call;
mod calls;
mod connection;
mod front;
mod lines;
mod measured;
mod order;
mod output;
mod together;
mod way;

use crate::metrics::DoorMeasures;
use crate::service::Service;
use crate::streams::Listener;
use front::Front;
use kunci_replica::Member;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What the door allows a peer. None of it is policy: it protects one node.
#[derive(Clone, Debug)]
pub struct NativeLimits {
    /// Requests of one connection that have no answer yet; beyond, it isn't read.
    pub in_flight_max: usize,
    /// Bytes of answers that a peer hasn't taken; beyond, it is cut off. A connection that has as many requests under
    /// way as it may, and answers of usual length, needs a quarter of this.
    pub unread_bytes_max: usize,
    /// Lines that break the grammar; with this many the connection is closed.
    pub bad_lines_max: u32,
    /// For a whole line, from its first byte.
    pub line_within: Duration,
    /// Without a request under way, until the connection is closed. Dead peers are found much earlier, by TCP.
    pub idle_within: Duration,
    /// For a peer that reads nothing of what is sent to it.
    pub write_within: Duration,
    /// How long a stop waits for answers that are under way.
    pub drain_within: Duration,
    /// Open connections.
    pub connections_max: usize,
    /// Of so many acquires, releases and cancels one is followed through logs and spans; 0 is none.
    pub trace_one_in: u64,
}

impl Default for NativeLimits {
    fn default() -> Self {
        Self {
            in_flight_max: 4_096,
            unread_bytes_max: 2 << 20,
            bad_lines_max: 8,
            line_within: Duration::from_secs(30),
            idle_within: Duration::from_secs(10 * 60),
            write_within: Duration::from_secs(10),
            drain_within: Duration::from_secs(5),
            connections_max: 20_000,
            trace_one_in: 0,
        }
    }
}

/// One node's native door, for as long as its process lives. A clone is another handle to the same.
///
/// It needs no cluster to open: until [`NativeDoor::enter`] it answers every request about a lock that there is no leader.
#[derive(Clone)]
pub struct NativeDoor {
    front: Front,
}

impl NativeDoor {
    /// A door that isn't open yet. `me` says how this node is reached: the answer to a hello shows it.
    pub fn new(limits: NativeLimits, me: Member) -> Self {
        Self { front: Front::new(limits, me) }
    }

    /// From now on this door serves the cluster that the service stands before, those with open connections too. The
    /// first call counts.
    pub fn enter(&self, service: Service) {
        self.front.enter(service);
    }

    /// What this door has measured.
    pub(crate) fn measures(&self) -> Arc<DoorMeasures> {
        Arc::clone(&self.front.measures)
    }

    /// Serves until `stop`, then lets the answers that are under way out, for a bounded time. Once.
    ///
    /// Calls that wait are ended with a retriable refusal.
    pub async fn serve(self, listener: impl Listener, stop: CancellationToken) {
        let front = self.front.clone();
        let stopped = async {
            stop.cancelled().await;
            front.stop.cancel();
        };
        tokio::join!(accept::run(listener, self.front.clone()), stopped);
    }
}
