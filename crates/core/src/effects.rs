//! What one entry brings about, gathered while it is applied.

use crate::event::{Change, Event, EventKind};
use crate::reply::{AcquireReply, Answer, Placed};
use alloc::vec::Vec;
use kunci_types::{Attempt, ClusterTime, Owner, ResourceName, Revision};

/// Answers and events, and the step that they belong to.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) answers: Vec<Answer>,
    pub(crate) events: Vec<Event>,
    /// Steps taken so far; the current step's place is one less.
    pub(crate) places: u32,
}

impl Effects {
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
