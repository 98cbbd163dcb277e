//! What one front door measures.

use super::requests::Requests;
use kunci_replica::measures::Counter;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What one front door has measured since it was made.
#[derive(Debug)]
pub(crate) struct DoorMeasures {
    pub(crate) requests: Requests,
    /// Connections that were taken.
    pub(crate) opened: Counter,
    /// Connections that were too many.
    pub(crate) too_many: Counter,
    /// Bytes that clients sent.
    pub(crate) received: Counter,
    /// Bytes that clients were sent.
    pub(crate) sent: Counter,
    /// Connections that were cut since their peer didn't read its answers.
    pub(crate) unread: Counter,
    /// Connections that were closed since too many lines couldn't be read.
    pub(crate) bad_lines: Counter,
    /// One permit for each connection that may still be opened.
    connections: Arc<Semaphore>,
    connections_max: usize,
}

impl DoorMeasures {
    /// Those of a door with so many connections at most.
    pub(crate) fn new(connections: &Arc<Semaphore>, connections_max: usize) -> Arc<Self> {
        Arc::new(Self {
            requests: Requests::default(),
            opened: Counter::default(),
            too_many: Counter::default(),
            received: Counter::default(),
            sent: Counter::default(),
            unread: Counter::default(),
            bad_lines: Counter::default(),
            connections: Arc::clone(connections),
            connections_max,
        })
    }

    /// How many connections are open.
    pub(crate) fn connections(&self) -> usize {
        self.connections_max - self.connections.available_permits()
    }

    /// How many there may be.
    pub(crate) fn connections_max(&self) -> usize {
        self.connections_max
    }
}
