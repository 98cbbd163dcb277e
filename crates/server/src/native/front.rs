//! What every connection has at hand, whether this node belongs to a cluster or not.
//!
//! Owns: the door's limits, and the moment from which there is a service behind it. Never: a call.

use super::NativeLimits;
use crate::metrics::DoorMeasures;
use crate::service::{Refused, Service};
use crate::trace::Traces;
use kunci_api::native::At;
use kunci_api::{Code, Problem};
use kunci_replica::{Member, Position};
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::{Semaphore, SetOnce};
use tokio_util::sync::CancellationToken;

/// What every connection has at hand. A clone is another handle to the same.
#[derive(Clone)]
pub(super) struct Front(Arc<Parts>);

pub(super) struct Parts {
    pub(super) limits: NativeLimits,
    /// How this node is reached.
    pub(super) me: Member,
    /// There once this node belongs to a cluster.
    pub(super) service: SetOnce<Service>,
    /// The node stops: waiting calls end.
    pub(super) stop: CancellationToken,
    /// One permit for each open connection.
    pub(super) connections: Arc<Semaphore>,
    /// What this door has measured.
    pub(super) measures: Arc<DoorMeasures>,
    /// Which requests are followed.
    pub(super) traces: Traces,
}

impl Front {
    pub(super) fn new(mut limits: NativeLimits, me: Member) -> Self {
        limits.connections_max = limits.connections_max.min(Semaphore::MAX_PERMITS);
        let connections = Arc::new(Semaphore::new(limits.connections_max));
        Self(Arc::new(Parts {
            me,
            service: SetOnce::new(),
            stop: CancellationToken::new(),
            measures: DoorMeasures::new(&connections, limits.connections_max),
            connections,
            traces: Traces::new(limits.trace_one_in),
            limits,
        }))
    }

    pub(super) fn enter(&self, service: Service) {
        if self.service.set(service).is_err() {
            tracing::error!("the native door has its service already; the second one isn't served");
        }
    }

    /// Where this node's state stands.
    pub(super) fn position(&self) -> Position {
        self.service.get().map(Service::position).unwrap_or_default()
    }

    /// A refusal that no log entry decided.
    pub(super) fn refuse(&self, problem: Problem) -> Box<Refused> {
        match self.service.get() {
            Some(service) => service.refuse(problem),
            None => Box::new(Refused { problem, position: Position::default() }),
        }
    }

    /// The refusal of a node that belongs to no cluster.
    pub(super) fn refuse_without_cluster(&self) -> Box<Refused> {
        let detail = "this node belongs to no cluster yet; nothing was proposed";
        self.refuse(Problem::new(Code::NoLeader, detail))
    }
}

impl Deref for Front {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// A position as a line has it.
pub(super) fn at(position: Position) -> At {
    At { index: position.index, place: position.place }
}
