//! What every connection has at hand, whether this node belongs to a cluster or not.
//!
//! Owns: the door's limits and counts, and the moment from which there is a service behind it. Never: a call.

use super::HttpLimits;
use super::answer::Failure;
use super::init::FormAsked;
use super::link::KeptLink;
use crate::metrics::{DoorMeasures, HttpNumbers, Sources, text};
use crate::service::{Refused, Service};
use crate::trace::Traces;
use kunci_api::{Code, Problem};
use kunci_process::{sleep, sleep_until};
use kunci_replica::{Member, Position};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, SetOnce, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many may wait for the cluster that one of them asked for.
const FORMING_MAX: usize = 16;
/// How many look through the audit log at a time: each keeps a thread and a disk busy.
const SEARCHES_MAX: usize = 4;

/// A kept connection may be closed while its next request is on its way. Whoever asks more often than this is told to
/// go elsewhere by an answer before that.
const HEARD_WITHIN: Duration = Duration::from_millis(200);
/// How long after a stop a call may still get its answer before it counts as one that waits.
const LAST_ANSWERS_WITHIN: Duration = Duration::from_millis(500);

/// What every connection has at hand. A clone is another handle to the same.
#[derive(Clone)]
pub(super) struct Front(Arc<Parts>);

pub(super) struct Parts {
    pub(super) limits: HttpLimits,
    /// How this node is reached.
    pub(super) me: Member,
    /// There once this node belongs to a cluster.
    pub(super) service: SetOnce<Service>,
    /// To whoever can form a cluster.
    pub(super) forming: mpsc::Sender<FormAsked>,
    /// The way to the leader, when that is another member.
    pub(super) link: KeptLink,
    /// Since when the node is about to stop.
    draining: SetOnce<Instant>,
    /// The node stops: waiting calls end.
    pub(super) stop: CancellationToken,
    /// One permit for each open connection.
    pub(super) connections: Arc<Semaphore>,
    /// One permit for each open stream of events.
    pub(super) streams: Arc<Semaphore>,
    /// One permit for each search in the audit log.
    pub(super) searches: Arc<Semaphore>,
    /// What this door has measured.
    pub(super) measures: Arc<DoorMeasures>,
    /// Which requests are followed.
    pub(super) traces: Traces,
    /// What the native door has measured, where there is one.
    pub(super) native: SetOnce<Arc<DoorMeasures>>,
    answers: [AtomicU64; 5],
    passed_on: AtomicU64,
    streams_too_many: AtomicU64,
}

impl Front {
    pub(super) fn new(mut limits: HttpLimits, me: Member) -> (Self, mpsc::Receiver<FormAsked>) {
        for max in [&mut limits.connections_max, &mut limits.streams_max] {
            *max = (*max).min(Semaphore::MAX_PERMITS);
        }
        let (forming, asked) = mpsc::channel(FORMING_MAX);
        let connections = Arc::new(Semaphore::new(limits.connections_max));
        let parts = Parts {
            me,
            service: SetOnce::new(),
            forming,
            link: KeptLink::new(&limits),
            draining: SetOnce::new(),
            stop: CancellationToken::new(),
            measures: DoorMeasures::new(&connections, limits.connections_max),
            native: SetOnce::new(),
            traces: Traces::new(limits.trace_one_in),
            connections,
            streams: Arc::new(Semaphore::new(limits.streams_max)),
            searches: Arc::new(Semaphore::new(SEARCHES_MAX)),
            limits,
            answers: Default::default(),
            passed_on: AtomicU64::new(0),
            streams_too_many: AtomicU64::new(0),
        };
        (Self(Arc::new(parts)), asked)
    }

    pub(super) fn enter(&self, service: Service) {
        if self.service.set(service).is_err() {
            tracing::error!("the HTTP door has its service already; the second one isn't served");
        }
    }

    /// Says from now on that the node is about to stop.
    pub(super) fn drain(&self) {
        // Once said is enough.
        self.draining.set(kunci_process::now()).ok();
    }

    /// Waits until busy clients have heard that the node is about to stop, and then ends what waits.
    pub(super) async fn end(&self) {
        self.drain();
        sleep_until(*self.draining.wait().await + HEARD_WITHIN).await;
        self.stop.cancel();
    }

    /// Waits until calls that wait are to end, since the node stops: a moment after the stop, for what is as good as
    /// answered by then, such as a try.
    pub(super) async fn waits_end(&self) {
        self.stop.cancelled().await;
        sleep(LAST_ANSWERS_WITHIN).await;
    }

    /// Whether this node stops, or is about to.
    pub(super) fn is_ending(&self) -> bool {
        self.draining.initialized()
    }

    /// Where this node's state stands.
    pub(super) fn position(&self) -> Position {
        self.service.get().map(Service::position).unwrap_or_default()
    }

    /// A refusal that no log entry decided.
    pub(super) fn refuse(&self, problem: impl Into<Problem>) -> Failure {
        let problem = problem.into();
        match self.service.get() {
            Some(service) => service.refuse(problem).into(),
            None => Box::new(Refused { problem, position: Position::default() }).into(),
        }
    }

    /// The refusal of a node that belongs to no cluster.
    pub(super) fn refuse_without_cluster(&self) -> Failure {
        let detail = "this node belongs to no cluster yet: `kunci cluster init` forms one with it, and \
                      `kunci cluster add` takes it into one that there is; nothing was proposed";
        self.refuse(Problem::new(Code::NoLeader, detail))
    }

    pub(super) fn count_answer(&self, status: http::StatusCode) {
        let class = usize::from(status.as_u16() / 100);
        if let Some(count) = class.checked_sub(1).and_then(|class| self.answers.get(class)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn count_passed_on(&self) {
        self.passed_on.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_stream_too_many(&self) {
        self.streams_too_many.fetch_add(1, Ordering::Relaxed);
    }

    /// All numbers that this node shows.
    pub(super) fn metrics(&self) -> String {
        let answers = (1..).zip(&self.answers);
        let more = HttpNumbers {
            answers: answers.map(|(class, count)| (class, count.load(Ordering::Relaxed))).collect(),
            passed_on: self.passed_on.load(Ordering::Relaxed),
            streams: self.limits.streams_max - self.streams.available_permits(),
            streams_too_many: self.streams_too_many.load(Ordering::Relaxed),
        };
        let native = self.native.get().map(|native| &**native);
        text(&Sources::new(&self.measures, more, native, self.service.get()))
    }
}

impl Deref for Front {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
