//! The lock table: all state, and the one way in.
//!
//! Owns: the order in which an entry takes effect. Never: what a command does (see `apply`).

use crate::command::{Command, Entry};
use crate::effects::Effects;
use crate::index::Index;
use crate::invariants::broken;
use crate::lease::{Holding, Lease};
use crate::reply::{Applied, Placed, Reply};
use crate::request::{Request, RequestKey};
use crate::spread::SpreadMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use immutable_chunkmap::map::MapM;
use kunci_types::{ClusterTime, Origin, Policy, ResourceName, Revision};

/// The feature level of this release: it knows every command up to it.
pub const FEATURE_LEVEL: u32 = 1;

/// All locks, queues and remembered requests of a cluster.
///
/// # Guarantee
/// Equal entries applied in equal order to equal tables give equal tables, answers and snapshot bytes, on
/// every machine. Invariants are checked after every command on what it touched; a broken one panics, since
/// a replica whose state can't be trusted must stop.
#[derive(Clone, Debug)]
pub struct LockTable {
    pub(crate) state: State,
    pub(crate) index: Index,
}

/// What can't be derived: the content of a snapshot. A clone shares everything that isn't changed later.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) head: Head,
    pub(crate) holdings: MapM<ResourceName, Arc<Holding>>,
    pub(crate) requests: SpreadMap<RequestKey, Arc<Request>>,
}

/// The state's single values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) feature_level: u32,
    pub(crate) now: ClusterTime,
    pub(crate) revision: Revision,
    /// How many takeovers there have been.
    pub(crate) term: u64,
    /// Until when waiters of earlier terms count as attached.
    pub(crate) presence_until: Option<ClusterTime>,
    pub(crate) policy: Policy,
    pub(crate) policy_revision: Revision,
}

impl Default for LockTable {
    fn default() -> Self {
        Self::new()
    }
}

impl LockTable {
    /// The table of a new cluster: no lock, revision 0, the default policy.
    pub fn new() -> Self {
        let head = Head {
            feature_level: FEATURE_LEVEL,
            now: ClusterTime::START,
            revision: Revision::ZERO,
            term: 0,
            presence_until: None,
            policy: Policy::default(),
            policy_revision: Revision::ZERO,
        };
        Self {
            state: State { head, holdings: MapM::new(), requests: SpreadMap::default() },
            index: Index::default(),
        }
    }

    /// Applies one entry whole.
    ///
    /// In this order: renewals (and the beginning of a term), so that none is beaten by the expiry it came to
    /// prevent; then what is due by time; then the other commands as they arrived.
    pub fn apply(&mut self, entry: &Entry) -> Applied {
        self.state.head.now = self.state.head.now.max(entry.now);
        let mut effects = Effects::of(entry.commands.len());
        let mut replies: Vec<Option<Placed<Reply>>> = Vec::new();
        replies.resize_with(entry.commands.len(), || None);
        for ((at, command), reply) in entry.commands.iter().enumerate().zip(&mut replies) {
            if comes_before_time(command) {
                *reply = Some(self.step(&mut effects, command, entry.provenance.origin(at)));
            }
        }
        self.apply_due(&mut effects);
        for ((at, command), reply) in entry.commands.iter().enumerate().zip(&mut replies) {
            if reply.is_none() {
                *reply = Some(self.step(&mut effects, command, entry.provenance.origin(at)));
            }
        }
        Applied {
            replies: replies.into_iter().flatten().collect(),
            answers: effects.answers,
            events: effects.events,
            marks: effects.marks,
            places: effects.places,
            spans: effects.spans,
            late_renewals: effects.late_renewals,
        }
    }

    fn step(&mut self, effects: &mut Effects, command: &Command, origin: &Origin) -> Placed<Reply> {
        effects.step();
        let reply = self.execute(effects, command, origin);
        effects.placed(reply, self.state.head.revision)
    }

    /// The next instant at which time alone changes something; `None` while nothing is pending.
    pub fn next_deadline(&self) -> Option<ClusterTime> {
        let index = &self.index;
        let wait = index.waits.first_key_value().map(|((at, _), _)| *at);
        let holding = index.holdings.first().map(|(at, _)| *at);
        let forget = index.ended.first().map(|(at, _)| at.plus_ms(self.state.head.policy.retry_window_ms));
        [wait, holding, forget, self.state.head.presence_until].into_iter().flatten().min()
    }

    /// The level that decides which commands may be proposed.
    pub fn feature_level(&self) -> u32 {
        self.state.head.feature_level
    }

    /// Whether a request is remembered: it waits, was granted, or ended within the retry window.
    pub fn remembers(&self, request: &RequestKey) -> bool {
        self.request(request).is_some()
    }

    /// The cluster time of the last applied entry.
    pub fn now(&self) -> ClusterTime {
        self.state.head.now
    }

    pub(crate) fn lease(&self, resource: &ResourceName) -> Option<&Lease> {
        match &**self.state.holdings.get(resource)? {
            Holding::Held(lease) => Some(lease),
            Holding::Closed { .. } => None,
        }
    }

    pub(crate) fn lease_mut(&mut self, resource: &ResourceName) -> Option<&mut Lease> {
        match Arc::make_mut(self.state.holdings.get_mut_cow(resource)?) {
            Holding::Held(lease) => Some(lease),
            Holding::Closed { .. } => None,
        }
    }

    pub(crate) fn request(&self, request: &RequestKey) -> Option<&Request> {
        self.state.requests.get(request).map(|record| &**record)
    }

    pub(crate) fn request_mut(&mut self, request: &RequestKey) -> &mut Request {
        match self.state.requests.get_mut(request) {
            Some(record) => Arc::make_mut(record),
            None => broken("I5: a request that is queued or granted has no record"),
        }
    }

    pub(crate) fn insert_request(&mut self, key: RequestKey, request: Request) {
        self.state.requests.insert(key, Arc::new(request));
    }

    /// Moves the end of the lease or lock-delay on `resource`.
    pub(crate) fn move_holding(&mut self, resource: &ResourceName, from: ClusterTime, to: ClusterTime) {
        if from != to {
            self.index.holdings.remove(&(from, resource.clone()));
            self.index.holdings.insert((to, resource.clone()));
        }
    }
}

fn comes_before_time(command: &Command) -> bool {
    match command {
        Command::Renew(_) | Command::TakeOver => true,
        Command::Acquire(_)
        | Command::Release(_)
        | Command::Cancel(_)
        | Command::Detach(_)
        | Command::Abandon(_)
        | Command::ForceRelease(_)
        | Command::SetPolicy(_)
        | Command::RaiseRevision(_)
        | Command::RaiseFeatureLevel(_) => false,
    }
}
