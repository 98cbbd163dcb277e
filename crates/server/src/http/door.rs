//! What every handler has at hand.

use super::HttpLimits;
use crate::service::Service;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// What every handler has at hand. A clone is another handle to the same.
#[derive(Clone)]
pub(super) struct Door(Arc<Parts>);

pub(super) struct Parts {
    pub(super) service: Service,
    pub(super) limits: HttpLimits,
    /// The node stops: waiting calls end.
    pub(super) stop: CancellationToken,
    /// One permit for each open connection.
    pub(super) connections: Arc<Semaphore>,
    /// One permit for each open stream of events.
    pub(super) streams: Arc<Semaphore>,
    answers: [AtomicU64; 5],
}

/// The peer of this request has closed its side: it doesn't wait for the answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Gone(pub(super) CancellationToken);

impl Door {
    pub(super) fn new(service: Service, mut limits: HttpLimits, stop: CancellationToken) -> Self {
        for max in [&mut limits.connections_max, &mut limits.streams_max] {
            *max = (*max).min(Semaphore::MAX_PERMITS);
        }
        let connections = Arc::new(Semaphore::new(limits.connections_max));
        let streams = Arc::new(Semaphore::new(limits.streams_max));
        Self(Arc::new(Parts { service, limits, stop, connections, streams, answers: Default::default() }))
    }

    /// How many connections are open.
    pub(super) fn open_connections(&self) -> usize {
        self.limits.connections_max - self.connections.available_permits()
    }

    pub(super) fn count_answer(&self, status: http::StatusCode) {
        let class = usize::from(status.as_u16() / 100);
        if let Some(count) = class.checked_sub(1).and_then(|class| self.answers.get(class)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Each class of status, from 1 for 1xx, with how many answers had it.
    pub(super) fn answers(&self) -> impl Iterator<Item = (usize, u64)> {
        (1..).zip(&self.answers).map(|(class, count)| (class, count.load(Ordering::Relaxed)))
    }
}

impl Deref for Door {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
