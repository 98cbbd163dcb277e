//! A second lock table: naive on purpose, written from the contract, all linear scans.
//!
//! Never: shares a line with the one that it is compared with, beyond the words that both speak.

mod commands;
pub(crate) mod history;
mod time;

use kunci_core::RequestKey;
use kunci_core::command::{Acquire, Command, Entry};
use kunci_core::event::{Change, Event, EventKind};
use kunci_core::reply::{AcquireReply, Grant, LeaseEnd, Reply, Told};
use kunci_types::{
    Attempt, ClusterTime, LeaseId, LockDelay, Metadata, Owner, Policy, ResourceName, Revision, Ttl,
};

/// All locks, queues and records.
pub(crate) struct Twin {
    pub(crate) now: u64,
    pub(crate) revision: u64,
    term: u64,
    presence_until: Option<u64>,
    pub(crate) policy: Policy,
    pub(crate) policy_revision: u64,
    level: u32,
    pub(crate) leases: Vec<Lease>,
    /// Resources that a lock-delay keeps closed, and until when.
    closed: Vec<(ResourceName, u64)>,
    pub(crate) records: Vec<Record>,
    answers: Vec<Told3>,
    events: Vec<Event>,
}

/// An answer to a waiting call, and the revision after it.
pub(crate) type Told3 = (Attempt, AcquireReply, u64);

/// What an entry brings about, without the places.
pub(crate) struct Outcome {
    pub(crate) replies: Vec<(Reply, u64)>,
    pub(crate) answers: Vec<Told3>,
    pub(crate) events: Vec<Event>,
}

#[derive(Clone)]
pub(crate) struct Lease {
    pub(crate) resource: ResourceName,
    pub(crate) request: RequestKey,
    pub(crate) terms: Terms,
    pub(crate) token: u64,
    pub(crate) since: u64,
    pub(crate) until: u64,
    hold_until: u64,
    /// The call that it was meant for and the term, until the holder was heard of.
    unseen: Option<(Attempt, u64)>,
    graced: bool,
    caller: kunci_types::Caller,
}

#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) owner: Owner,
    pub(crate) ttl: u64,
    delay: u64,
    pub(crate) id: LeaseId,
    server_made: bool,
}

#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) request: RequestKey,
    caller: kunci_types::Caller,
    pub(crate) resource: ResourceName,
    /// `None` when the cancel came before the acquire.
    arguments: Option<(Option<Ttl>, LockDelay, Option<Metadata>)>,
    pub(crate) state: State,
}

#[derive(Clone)]
pub(crate) enum State {
    Waiting(Waiting),
    Granted,
    Ended { at: u64, how: LeaseEnd, token: u64, id: LeaseId },
    TimedOut { at: u64 },
    Cancelled { at: u64 },
}

#[derive(Clone)]
pub(crate) struct Waiting {
    pub(crate) terms: Terms,
    pub(crate) place: u64,
    pub(crate) since: u64,
    pub(crate) until: u64,
    pub(crate) call: Call,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Call {
    Open { attempt: Attempt, term: u64 },
    Away { until: u64 },
}

impl Twin {
    pub(crate) fn new() -> Self {
        Self {
            now: 0,
            revision: 0,
            term: 0,
            presence_until: None,
            policy: Policy::default(),
            policy_revision: 0,
            level: 1,
            leases: Vec::new(),
            closed: Vec::new(),
            records: Vec::new(),
            answers: Vec::new(),
            events: Vec::new(),
        }
    }

    pub(crate) fn apply(&mut self, entry: &Entry) -> Outcome {
        self.now = self.now.max(entry.now.as_ms());
        let before_time = |command: &&Command| matches!(command, Command::Renew(_) | Command::TakeOver);
        let early: Vec<(Reply, u64)> =
            entry.commands.iter().filter(before_time).map(|command| self.command(command)).collect();
        self.pass_time();
        let late: Vec<(Reply, u64)> = entry
            .commands
            .iter()
            .filter(|it| !before_time(it))
            .map(|command| self.command(command))
            .collect();
        let (mut early, mut late) = (early.into_iter(), late.into_iter());
        let in_order = |command| if before_time(&command) { early.next() } else { late.next() };
        Outcome {
            replies: entry.commands.iter().filter_map(in_order).collect(),
            answers: std::mem::take(&mut self.answers),
            events: std::mem::take(&mut self.events),
        }
    }

    /// The waiters of a resource in order of place.
    pub(crate) fn waiters(&self, resource: &ResourceName) -> Vec<(RequestKey, Waiting)> {
        let mut waiters: Vec<_> = self
            .waiting()
            .filter(|(record, _)| record.resource == *resource)
            .map(|(record, waiting)| (record.request.clone(), waiting.clone()))
            .collect();
        waiters.sort_by_key(|(_, waiting)| waiting.place);
        waiters
    }

    pub(crate) fn lease(&self, resource: &ResourceName) -> Option<&Lease> {
        self.leases.iter().find(|lease| lease.resource == *resource)
    }

    pub(crate) fn closed_until(&self, resource: &ResourceName) -> Option<u64> {
        self.closed.iter().find(|(name, _)| name == resource).map(|(_, until)| *until)
    }

    fn waiting(&self) -> impl Iterator<Item = (&Record, &Waiting)> {
        self.records.iter().filter_map(|record| match &record.state {
            State::Waiting(waiting) => Some((record, waiting)),
            _ => None,
        })
    }

    fn record(&mut self, request: &RequestKey) -> &mut Record {
        self.records.iter_mut().find(|record| record.request == *request).unwrap()
    }

    fn is_free(&self, resource: &ResourceName) -> bool {
        self.lease(resource).is_none() && self.closed_until(resource).is_none()
    }

    fn happened(&mut self, resource: &ResourceName, owner: &Owner, change: Change) -> u64 {
        let (resource, owner) = (resource.clone(), owner.clone());
        self.happened_kind(EventKind::Resource { resource, owner, change })
    }

    fn happened_kind(&mut self, kind: EventKind) -> u64 {
        self.revision += 1;
        let revision = Revision::new(self.revision).unwrap();
        self.events.push(Event { revision, at: ClusterTime::from_ms(self.now), kind });
        self.revision
    }

    /// Grants a free resource to a request that has a record.
    fn grant(&mut self, request: &RequestKey, terms: Terms, attempt: Attempt) -> Grant {
        let record = self.record(request);
        record.state = State::Granted;
        let (resource, caller) = (record.resource.clone(), record.caller.clone());
        assert!(self.is_free(&resource));
        let token = self.happened(&resource, &terms.owner, Change::Granted { ttl_ms: terms.ttl });
        let hold_until = self.now + self.policy.total_hold_ms_max;
        let lease = Lease {
            resource,
            request: request.clone(),
            token,
            since: self.now,
            until: hold_until.min(self.now + terms.ttl),
            hold_until,
            unseen: Some((attempt, self.term)),
            graced: false,
            caller,
            terms,
        };
        let grant = self.show(&lease, Told::First);
        self.leases.push(lease);
        grant
    }

    fn show(&self, lease: &Lease, told: Told) -> Grant {
        Grant {
            lease_id: lease.terms.id,
            token: Revision::new(lease.token).unwrap().token(),
            remaining_ms: lease.until - self.now,
            ttl_ms: lease.terms.ttl,
            told,
        }
    }

    /// Ends the lease of a resource, and closes it or hands it on.
    fn end(&mut self, resource: &ResourceName, how: LeaseEnd, change: impl FnOnce(u64) -> Change) {
        let at = self.leases.iter().position(|lease| lease.resource == *resource).unwrap();
        let lease = self.leases.remove(at);
        self.happened(resource, &lease.terms.owner, change(lease.token));
        let (at, id, token) = (self.now, lease.terms.id, lease.token);
        self.record(&lease.request).state = State::Ended { at, how, token, id };
        let closes = matches!(how, LeaseEnd::Expired | LeaseEnd::Forced) && lease.terms.delay > 0;
        if closes {
            self.closed.push((resource.clone(), self.now + lease.terms.delay));
        } else {
            self.hand_on(resource);
        }
    }

    fn hand_on(&mut self, resource: &ResourceName) {
        let first = self.waiters(resource).into_iter().find_map(|(request, waiting)| match waiting.call {
            Call::Open { attempt, .. } => Some((request, waiting.terms, attempt)),
            Call::Away { .. } => None,
        });
        if let Some((request, terms, attempt)) = first {
            let grant = self.grant(&request, terms, attempt);
            self.answers.push((attempt, AcquireReply::Granted(grant), self.revision));
        }
    }
}

fn arguments(acquire: &Acquire) -> (Option<Ttl>, LockDelay, Option<Metadata>) {
    (acquire.ttl, acquire.lock_delay, acquire.metadata.clone())
}

impl Twin {
    /// The leases granted so far, with those that are current now and not yet among `known`.
    pub(crate) fn granted(
        &self,
        mut known: Vec<(LeaseId, kunci_types::FencingToken)>,
    ) -> Vec<(LeaseId, kunci_types::FencingToken)> {
        for lease in &self.leases {
            if !known.iter().any(|(id, _)| *id == lease.terms.id) {
                known.push((lease.terms.id, Revision::new(lease.token).unwrap().token()));
            }
        }
        known
    }
}
