//! What one entry brings about, gathered while it is applied.

use crate::event::{Change, Event, EventKind, Mark};
use crate::reply::{AcquireReply, Answer, Placed, Span, SpanOf};
use crate::request::RequestKey;
use alloc::vec::Vec;
use kunci_types::{Attempt, ClientAddress, ClusterTime, LeaseId, Owner, ResourceName, Revision};

/// Answers and events, and the step that they belong to.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) answers: Vec<Answer>,
    pub(crate) events: Vec<Event>,
    pub(crate) marks: Vec<Mark>,
    /// Steps taken so far; the current step's place is one less.
    pub(crate) places: u32,
    pub(crate) spans: Vec<Span>,
    pub(crate) late_renewals: u32,
}

impl Effects {
    /// With room for what so many commands mostly bring about.
    pub(crate) fn of(commands: usize) -> Self {
        Self { events: Vec::with_capacity(commands), marks: Vec::with_capacity(commands), ..Self::default() }
    }

    /// Begins the next step.
    pub(crate) fn step(&mut self) {
        self.places = self.places.saturating_add(1);
    }

    /// Puts a value at the current step.
    pub(crate) fn placed<T>(&self, value: T, revision: Revision) -> Placed<T> {
        Placed { value, place: self.places.saturating_sub(1), revision }
    }

    pub(crate) fn answer(&mut self, attempt: Attempt, reply: AcquireReply, revision: Revision) {
        let reply = self.placed(reply, revision);
        self.answers.push(Answer { attempt, reply });
    }

    /// Notes how long something had lasted that ends now.
    pub(crate) fn lasted(&mut self, of: SpanOf, since: ClusterTime, now: ClusterTime) {
        self.spans.push(Span { ms: now.ms_since(since), of });
    }

    /// Says of the newest event whose request it is about.
    pub(crate) fn mark(
        &mut self,
        request: &RequestKey,
        lease_id: Option<LeaseId>,
        address: Option<ClientAddress>,
    ) {
        self.marks.push(Mark {
            event: self.events.len().saturating_sub(1),
            place: self.places.saturating_sub(1),
            request: request.clone(),
            lease_id,
            address,
        });
    }

    pub(crate) fn resource_event(
        &mut self,
        at: (Revision, ClusterTime),
        subject: (&ResourceName, &Owner),
        change: Change,
    ) {
        let kind = EventKind::Resource { resource: subject.0.clone(), owner: subject.1.clone(), change };
        self.events.push(Event { revision: at.0, at: at.1, kind });
    }
}
