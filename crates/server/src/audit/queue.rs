//! What waits to be recorded.
//!
//! Owns: the bound. What doesn't fit is counted, and told in the place where it is missing. Never: waits for room.

use super::denied::Denied;
use kunci_replica::{Seen, SeenEntry};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Commands and events that may wait: some two seconds at full speed, at about 500 bytes each.
const WEIGHT_MAX: usize = 131_072;
/// A node that starts applies what is in its log faster than it ever was written, and nobody waits for that: meanwhile it
/// may wait for the writer, for so long in all.
const PATIENCE: Duration = Duration::from_secs(2);
/// From one look for room to the next.
const ROOM_EVERY: Duration = Duration::from_millis(1);
/// Refusals of this node itself that are recorded in a [`WINDOW`]. Who is denied in a loop mustn't wash out what others did.
const DENIED_MAX: u32 = 200;
const WINDOW: Duration = Duration::from_secs(1);

/// What the writer is told.
#[derive(Debug)]
pub(super) enum Said {
    Begins { node_id: u64, cluster_id: String, index: u64 },
    Seen(Box<Seen>),
    Covered { index: u64 },
    Skipped { index: u64 },
    Denied(Box<Denied>),
}

/// What is missing in one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Missing {
    /// Commands and events, at most.
    pub(super) count: u64,
    /// The first and the last log entry of them.
    pub(super) entries: Option<(u64, u64)>,
}

impl Missing {
    pub(super) fn is_nothing(self) -> bool {
        self == Self::default()
    }

    fn entry(&mut self, index: u64, count: usize) {
        self.count += count as u64;
        self.entries = Some((self.entries.map_or(index, |(first, _)| first), index));
    }
}

/// The queue, and what has been counted.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    news: Condvar,
    pub(super) counts: Counts,
}

impl Default for Queue {
    fn default() -> Self {
        Self::holding(WEIGHT_MAX)
    }
}

/// What has been counted since the start.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) written: AtomicU64,
    pub(super) missing: AtomicU64,
    pub(super) failures: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Each with what is missing before it.
    said: VecDeque<(Missing, Said)>,
    weight: usize,
    weight_max: usize,
    missing: Missing,
    denied: Option<(Instant, u32)>,
    /// Up to which entry one may wait for room, and for how much longer in all.
    starting: Option<(u64, Duration)>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// Nothing is taken any more.
    Closed,
    /// And everything is written.
    Over,
}

/// What the writer gets.
#[derive(Debug)]
pub(super) enum Next {
    /// What was said, and what is missing before it.
    Said(Missing, Said),
    /// Nothing waits, and this is missing.
    Missing(Missing),
    /// Nothing came in time.
    Nothing,
    /// Nothing will come any more.
    Closed,
}

impl Queue {
    /// A queue for so much.
    pub(super) fn holding(weight_max: usize) -> Self {
        let waiting = Mutex::new(Waiting { weight_max, ..Waiting::default() });
        Self { waiting, news: Condvar::new(), counts: Counts::default() }
    }

    /// Takes what is said seldom, whether there is room or not.
    pub(super) fn push_always(&self, said: Said) {
        self.push(said, 0);
    }

    /// The entries up to `log_end` are applied again.
    pub(super) fn starts_with(&self, log_end: u64) {
        self.waiting().starting = Some((log_end, PATIENCE));
    }

    pub(super) fn push_seen(&self, seen: Seen) {
        let weight = weight_of(&seen);
        if weight > 0 {
            self.wait_for_room(seen.index, weight);
            self.push(Said::Seen(Box::new(seen)), weight);
        }
    }

    /// Only while the node applies its old log, and not for long.
    fn wait_for_room(&self, index: u64, weight: usize) {
        loop {
            let mut waiting = self.waiting();
            let Some((log_end, left)) = waiting.starting else { return };
            if waiting.weight + weight <= waiting.weight_max || waiting.phase != Phase::Open {
                return;
            }
            let Some(less) = left.checked_sub(ROOM_EVERY).filter(|_| index <= log_end) else {
                waiting.starting = None;
                return;
            };
            waiting.starting = Some((log_end, less));
            drop(waiting);
            std::thread::sleep(ROOM_EVERY);
        }
    }

    pub(super) fn push_denied(&self, denied: Denied) {
        let now = kunci_process::now();
        let mut waiting = self.waiting();
        let (began, count) = match waiting.denied {
            Some((began, count)) if now.saturating_duration_since(began) < WINDOW => (began, count),
            _ => (now, 0),
        };
        waiting.denied = Some((began, count + 1));
        if count >= DENIED_MAX {
            waiting.missing.count += 1;
            self.counts.missing.fetch_add(1, Ordering::Relaxed);
            return;
        }
        drop(waiting);
        self.push(Said::Denied(Box::new(denied)), 1);
    }

    fn push(&self, said: Said, weight: usize) {
        let mut waiting = self.waiting();
        if waiting.phase != Phase::Open {
            return;
        }
        if weight > 0 && waiting.weight + weight > waiting.weight_max {
            match &said {
                Said::Seen(seen) => waiting.missing.entry(seen.index, weight),
                _ => waiting.missing.count += 1,
            }
            self.counts.missing.fetch_add(weight as u64, Ordering::Relaxed);
            return;
        }
        waiting.weight += weight;
        let missing = std::mem::take(&mut waiting.missing);
        waiting.said.push_back((missing, said));
        // The writer takes all that waits before it sleeps again.
        if waiting.said.len() == 1 {
            self.news.notify_one();
        }
    }

    /// The next thing that was said; waits for it for at most `within`.
    pub(super) fn next(&self, within: Duration) -> Next {
        let mut waiting = self.waiting();
        if waiting.said.is_empty() && waiting.phase == Phase::Open && waiting.missing.is_nothing() {
            waiting = self.news.wait_timeout(waiting, within).unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Some((missing, said)) = waiting.said.pop_front() {
            if let Said::Seen(seen) = &said {
                waiting.weight = waiting.weight.saturating_sub(weight_of(seen));
            } else if let Said::Denied(_) = &said {
                waiting.weight = waiting.weight.saturating_sub(1);
            }
            return Next::Said(missing, said);
        }
        let missing = std::mem::take(&mut waiting.missing);
        match (missing.is_nothing(), waiting.phase) {
            (false, _) => Next::Missing(missing),
            (true, Phase::Open) => Next::Nothing,
            (true, Phase::Closed | Phase::Over) => Next::Closed,
        }
    }

    /// Sleeps, unless or until the queue is closed.
    pub(super) fn sleep(&self, time: Duration) {
        let waiting = self.waiting();
        let is_open = |waiting: &mut Waiting| waiting.phase == Phase::Open;
        drop(self.news.wait_timeout_while(waiting, time, is_open));
    }

    pub(super) fn close(&self) {
        let mut waiting = self.waiting();
        if waiting.phase == Phase::Open {
            waiting.phase = Phase::Closed;
        }
        self.news.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.waiting().phase != Phase::Open
    }

    pub(super) fn end(&self) {
        self.waiting().phase = Phase::Over;
    }

    pub(super) fn is_over(&self) -> bool {
        self.waiting().phase == Phase::Over
    }

    pub(super) fn weight(&self) -> usize {
        self.waiting().weight
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // It is whole between any two of its operations.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much an entry counts: a record at most for each of them, but for renewals of many leases.
fn weight_of(seen: &Seen) -> usize {
    match &seen.what {
        SeenEntry::Commands { entry, events, .. } => entry.commands.len().max(events.len()),
        SeenEntry::Members { .. } => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kunci_types::{ClusterTime, Origin};
    use std::collections::BTreeSet;

    fn members(index: u64) -> Seen {
        let what = SeenEntry::Members { voters: Vec::new(), learners: BTreeSet::new() };
        Seen { index, cluster_time: ClusterTime::START, what }
    }

    fn next(queue: &Queue) -> Next {
        queue.next(Duration::ZERO)
    }

    #[test]
    fn what_does_not_fit_is_told_in_its_place() {
        let queue = Queue::holding(2);
        for index in 1..=5 {
            queue.push_seen(members(index));
        }
        assert!(
            matches!(next(&queue), Next::Said(missing, Said::Seen(seen)) if missing.is_nothing() && seen.index == 1)
        );
        queue.push_seen(members(6));
        assert!(
            matches!(next(&queue), Next::Said(missing, Said::Seen(seen)) if missing.is_nothing() && seen.index == 2)
        );
        let lost = Missing { count: 3, entries: Some((3, 5)) };
        assert!(
            matches!(next(&queue), Next::Said(missing, Said::Seen(seen)) if missing == lost && seen.index == 6)
        );
        assert!(matches!(next(&queue), Next::Nothing));
    }

    /// A queue that is full, with a log up to entry 2 that is applied again.
    #[test]
    fn only_what_was_in_the_log_at_the_start_waits_for_room() {
        let queue = Queue::holding(1);
        queue.starts_with(2);
        queue.push_seen(members(1));
        let began = kunci_process::now();
        queue.push_seen(members(2));
        assert!(began.elapsed() >= PATIENCE, "entry 2 waits");
        queue.starts_with(2);
        let began = kunci_process::now();
        queue.push_seen(members(3));
        assert!(began.elapsed() < PATIENCE / 2, "entry 3 waits for nothing");
    }

    #[test]
    fn what_is_missing_at_the_end_is_told_too() {
        let queue = Queue::holding(1);
        queue.push_seen(members(1));
        queue.push_seen(members(2));
        queue.close();
        assert!(matches!(next(&queue), Next::Said(..)));
        let lost = Missing { count: 1, entries: Some((2, 2)) };
        assert!(matches!(next(&queue), Next::Missing(missing) if missing == lost));
        assert!(matches!(next(&queue), Next::Closed));
    }

    #[test]
    fn a_flood_of_refusals_is_recorded_in_part_and_counted() {
        let queue = Queue::default();
        for _ in 0..DENIED_MAX + 7 {
            queue.push_denied(Denied {
                action: super::super::outcome::Action::Acquire,
                outcome: "overloaded",
                resource: None,
                owner: None,
                token: None,
                lease_id: None,
                origin: Origin::UNKNOWN,
            });
        }
        queue.push_seen(members(1));
        let mut denied = 0;
        loop {
            match next(&queue) {
                Next::Said(_, Said::Denied(_)) => denied += 1,
                Next::Said(missing, Said::Seen(_)) => {
                    break assert_eq!(missing, Missing { count: 7, entries: None });
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(denied, DENIED_MAX);
    }
}
