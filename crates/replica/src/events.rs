//! What happened lately, for watchers and histories.
//!
//! Owns: a ring of the last events, the same on every node that applied the same entries. Never: waits for a
//! slow watcher; who falls out of the ring is told.

use kunci_core::event::{Event, EventKind};
use kunci_types::{ResourceName, Revision};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How many events the ring keeps: a minute of 1,000 events a second, at some 10 MiB.
const EVENTS_MAX: usize = 65_536;

/// A watcher asked for events that are no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "events up to revision {oldest} are no longer kept: list the locks and watch from the list's revision"
)]
pub struct Compacted {
    /// The events after this revision are kept.
    pub oldest: Revision,
}

/// The ring and its readers.
#[derive(Debug)]
pub(crate) struct Events {
    ring: Mutex<Ring>,
    newest: watch::Sender<Revision>,
}

#[derive(Debug)]
struct Ring {
    events: VecDeque<Arc<Event>>,
    /// Events after this one are in the ring.
    after: Revision,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Closed,
}

impl Events {
    /// An empty ring behind a state of this revision.
    pub(crate) fn new(revision: Revision) -> Arc<Self> {
        let ring = Mutex::new(Ring { events: VecDeque::new(), after: revision, phase: Phase::Open });
        Arc::new(Self { ring, newest: watch::Sender::new(revision) })
    }

    /// Forgets everything; the state was replaced by one of this revision.
    pub(crate) fn reset(&self, revision: Revision) {
        let mut ring = self.ring();
        ring.events.clear();
        ring.after = revision;
        drop(ring);
        self.newest.send_replace(revision);
    }

    pub(crate) fn add(&self, events: Vec<Arc<Event>>) {
        let Some(newest) = events.last().map(|event| event.revision) else { return };
        let mut ring = self.ring();
        for event in events {
            if ring.events.len() == EVENTS_MAX
                && let Some(dropped) = ring.events.pop_front()
            {
                ring.after = dropped.revision;
            }
            ring.events.push_back(event);
        }
        drop(ring);
        self.newest.send_replace(newest);
    }

    /// Ends every watch once it has read what is there.
    pub(crate) fn close(&self) {
        self.ring().phase = Phase::Closed;
        self.newest.send_modify(|_| {});
    }

    /// The kept events of one resource, the last `limit` of them, oldest first.
    pub(crate) fn history(&self, resource: &ResourceName, limit: usize) -> Vec<Event> {
        let of_resource = |event: &&Arc<Event>| match &event.kind {
            EventKind::Resource { resource: name, .. } => name == resource,
            EventKind::PolicyChanged | EventKind::RevisionRaised => false,
        };
        let ring = self.ring();
        let mut events: Vec<Arc<Event>> =
            ring.events.iter().rev().filter(of_resource).take(limit).cloned().collect();
        drop(ring);
        events.reverse();
        events.iter().map(|event| (**event).clone()).collect()
    }

    /// Watches from after a revision, or from now on.
    pub(crate) fn watch(self: &Arc<Self>, after: Option<Revision>) -> Result<Watch, Compacted> {
        let newest = self.newest.subscribe();
        let after = after.unwrap_or(*newest.borrow());
        self.ring().next_after(after)?;
        Ok(Watch { events: Arc::clone(self), newest, after })
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // The ring is whole between any two of its operations.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn look_after(&self, after: Revision) -> (Result<Option<Arc<Event>>, Compacted>, Phase) {
        (self.next_after(after), self.phase)
    }

    fn next_after(&self, after: Revision) -> Result<Option<Arc<Event>>, Compacted> {
        if after < self.after {
            return Err(Compacted { oldest: self.after });
        }
        let at = self.events.partition_point(|event| event.revision <= after);
        Ok(self.events.get(at).cloned())
    }
}

/// A reader of events that goes on where it stopped.
#[derive(Debug)]
pub struct Watch {
    events: Arc<Events>,
    newest: watch::Receiver<Revision>,
    after: Revision,
}

impl Watch {
    /// Waits for the next event.
    ///
    /// `None` once the replica has stopped. Safe to drop while it waits: nothing is lost.
    ///
    /// # Errors
    /// When this reader was too slow and events after its last one are no longer kept.
    pub async fn next(&mut self) -> Option<Result<Arc<Event>, Compacted>> {
        loop {
            self.newest.mark_unchanged();
            let (next, phase) = self.events.ring().look_after(self.after);
            match next {
                Err(compacted) => return Some(Err(compacted)),
                Ok(Some(event)) => {
                    self.after = event.revision;
                    return Some(Ok(event));
                }
                Ok(None) if phase == Phase::Closed => return None,
                Ok(None) => self.newest.changed().await.ok()?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kunci_types::ClusterTime;

    fn event(revision: u64) -> Arc<Event> {
        let revision = Revision::new(revision).unwrap();
        Arc::new(Event { revision, at: ClusterTime::START, kind: EventKind::PolicyChanged })
    }

    #[tokio::test]
    async fn a_watch_goes_on_from_a_revision_and_waits_for_more() {
        let events = Events::new(Revision::ZERO);
        events.add(vec![event(1), event(2)]);
        let mut watch = events.watch(Revision::new(1)).unwrap();
        assert_eq!(watch.next().await.unwrap().unwrap().revision.get(), 2);
        let later = tokio::spawn(async move { watch.next().await });
        tokio::task::yield_now().await;
        events.add(vec![event(3)]);
        assert_eq!(later.await.unwrap().unwrap().unwrap().revision.get(), 3);
    }

    #[tokio::test]
    async fn who_falls_out_of_the_ring_is_told() {
        let events = Events::new(Revision::ZERO);
        let mut slow = events.watch(None).unwrap();
        events.add((1..=EVENTS_MAX as u64 + 5).map(event).collect());
        let compacted = Compacted { oldest: Revision::new(5).unwrap() };
        assert_eq!(slow.next().await.unwrap().unwrap_err(), compacted);
        assert_eq!(events.watch(Revision::new(4)).unwrap_err(), compacted);
        assert!(events.watch(Revision::new(5)).is_ok());
    }
}
