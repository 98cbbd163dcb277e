//! What is measured while the replica works: counts and spreads, for whoever shows them.
//!
//! Owns: how a number is kept so that keeping it costs nothing that anybody would notice: no lock, no allocation, no look-up.
//! Never: a name, a label or a format of a number that is shown; a number that decides anything.

use crate::lead::Lead;
use kunci_core::event::{Change, Event, EventKind};
use kunci_core::reply::{Applied, LeaseEnd, Placed, RenewReply, Reply, Span, SpanOf, WaitEnd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A histogram has at most so many bounds.
pub const BOUNDS_MAX: usize = 12;

/// Bounds for what a client waits for, in µs.
pub const LATENCY_US: [u64; BOUNDS_MAX] =
    [500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000, 30_000_000];
/// Bounds for what a disk or a state takes, in µs.
const WORK_US: [u64; BOUNDS_MAX] =
    [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000];
/// Bounds for an election and what follows it, in µs.
const ELECTION_US: [u64; BOUNDS_MAX] = [
    10_000, 50_000, 100_000, 200_000, 300_000, 400_000, 500_000, 750_000, 1_000_000, 2_000_000, 5_000_000,
    15_000_000,
];
/// Bounds for how long somebody waits in a queue or holds a lease, in ms.
const SPAN_MS: [u64; BOUNDS_MAX] =
    [10, 50, 250, 1_000, 5_000, 15_000, 60_000, 300_000, 900_000, 3_600_000, 14_400_000, 86_400_000];
/// Bounds for the commands in one entry.
const COMMANDS: [u64; BOUNDS_MAX] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048];

/// How often something happened.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// It happened once more.
    pub fn count(&self) {
        self.add(1);
    }

    /// It happened so many times more.
    pub fn add(&self, times: u64) {
        // Not written for nothing: other threads would have to fetch it again.
        if times > 0 {
            self.0.fetch_add(times, Ordering::Relaxed);
        }
    }

    /// How often it happened so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How values spread: how many are up to each of a few bounds.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64; BOUNDS_MAX],
    /// How many are up to each bound and not up to the one before; the last beyond all of them.
    counts: [AtomicU64; BOUNDS_MAX + 1],
    sum: AtomicU64,
}

impl Histogram {
    /// An empty one. Bounds and values are of one unit, which is the caller's.
    pub fn new(bounds: &'static [u64; BOUNDS_MAX]) -> Self {
        Self { bounds, counts: Default::default(), sum: AtomicU64::new(0) }
    }

    /// Takes up a value.
    pub fn record(&self, value: u64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Takes up a time; the bounds are in µs.
    pub fn record_time(&self, time: Duration) {
        self.record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Each bound with how many values are up to it.
    pub fn up_to(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut total = 0;
        self.bounds.iter().zip(&self.counts).map(move |(bound, count)| {
            total += count.load(Ordering::Relaxed);
            (*bound, total)
        })
    }

    /// Whether there is no value yet.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| count.load(Ordering::Relaxed) == 0)
    }

    /// How many values there are beyond the last bound.
    pub fn beyond(&self) -> u64 {
        self.counts.last().map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// All values together.
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}

/// What one replica has measured since it was opened.
#[derive(Debug)]
pub struct Measures {
    /// Commands of each entry that this node proposed.
    pub batch_commands: Histogram,
    /// Commands that weren't taken since too many waited.
    pub batcher_full: Counter,
    /// From proposing an entry to its being applied, in µs.
    pub commit: Histogram,
    /// Applying an entry, in µs.
    pub apply: Histogram,
    /// Entries with commands that were applied.
    pub applied_entries: Counter,
    /// Their bytes.
    pub applied_bytes: Counter,
    /// In the order of [`EVENT_KINDS`].
    events: [Counter; EVENT_KINDS.len()],
    /// Grants to a request that had waited.
    pub handoffs: Counter,
    /// Leases that were renewed in good time.
    pub renewed: Counter,
    /// Leases that were renewed with little time left.
    pub renewed_late: Counter,
    /// Leases that were to be renewed and weren't the caller's, or were over.
    pub renewals_lost: Counter,
    /// Leases that were to be renewed for a time that the policy doesn't allow.
    pub renewals_rejected: Counter,
    /// In ms, in the order of [`WAIT_ENDS`] and [`LEASE_ENDS`].
    waits: [Histogram; WAIT_ENDS.len()],
    holds: [Histogram; LEASE_ENDS.len()],
    /// Terms with a leader that began.
    pub elections: Counter,
    /// How often another node than before led.
    pub leader_changes: Counter,
    /// From no leader to one that serves, in µs.
    pub election: Histogram,
    /// From being elected to serving, in µs.
    pub takeover: Histogram,
    /// Writing a snapshot, in µs.
    pub snapshot: Histogram,
    /// Snapshots that came from the leader.
    pub snapshots_received: Counter,
}

/// The kinds of events, by their names on the wire.
const EVENT_KINDS: [&str; 11] = [
    "queued",
    "granted",
    "released",
    "expired",
    "forced",
    "abandoned",
    "timed_out",
    "cancelled",
    "dropped",
    "policy_changed",
    "revision_raised",
];
/// How a wait ends and how a lease does, in the order of [`WaitEnd`] and [`LeaseEnd`].
const WAIT_ENDS: [&str; 4] = ["granted", "timed_out", "cancelled", "dropped"];
const LEASE_ENDS: [&str; 4] = ["released", "expired", "forced", "abandoned"];

/// Where an event is counted.
fn kind_of(event: &Event) -> usize {
    match &event.kind {
        EventKind::Resource { change, .. } => match change {
            Change::Queued => 0,
            Change::Granted { .. } => 1,
            Change::Released { .. } => 2,
            Change::Expired { .. } => 3,
            Change::Forced { .. } => 4,
            Change::Abandoned { .. } => 5,
            Change::TimedOut => 6,
            Change::Cancelled => 7,
            Change::Dropped => 8,
        },
        EventKind::PolicyChanged => 9,
        EventKind::RevisionRaised => 10,
    }
}

fn wait_end(end: WaitEnd) -> usize {
    match end {
        WaitEnd::Granted => 0,
        WaitEnd::TimedOut => 1,
        WaitEnd::Cancelled => 2,
        WaitEnd::Dropped => 3,
    }
}

fn lease_end(end: LeaseEnd) -> usize {
    match end {
        LeaseEnd::Released => 0,
        LeaseEnd::Expired => 1,
        LeaseEnd::Forced => 2,
        LeaseEnd::Abandoned => 3,
    }
}

impl Default for Measures {
    fn default() -> Self {
        let spans = || Histogram::new(&SPAN_MS);
        Self {
            batch_commands: Histogram::new(&COMMANDS),
            batcher_full: Counter::default(),
            commit: Histogram::new(&LATENCY_US),
            apply: Histogram::new(&WORK_US),
            applied_entries: Counter::default(),
            applied_bytes: Counter::default(),
            events: Default::default(),
            handoffs: Counter::default(),
            renewed: Counter::default(),
            renewed_late: Counter::default(),
            renewals_lost: Counter::default(),
            renewals_rejected: Counter::default(),
            waits: std::array::from_fn(|_| spans()),
            holds: std::array::from_fn(|_| spans()),
            elections: Counter::default(),
            leader_changes: Counter::default(),
            election: Histogram::new(&ELECTION_US),
            takeover: Histogram::new(&ELECTION_US),
            snapshot: Histogram::new(&LATENCY_US),
            snapshots_received: Counter::default(),
        }
    }
}

/// A histogram of how long the disk takes.
pub(crate) fn of_syncs() -> Histogram {
    Histogram::new(&WORK_US)
}

impl Measures {
    /// Takes up what an entry of so many bytes brought about.
    pub(crate) fn applied(&self, applied: &Applied, bytes: usize) {
        self.applied_entries.count();
        self.applied_bytes.add(bytes as u64);
        let mut events = [0; EVENT_KINDS.len()];
        for event in &applied.events {
            if let Some(count) = events.get_mut(kind_of(event)) {
                *count += 1;
            }
        }
        for (counter, count) in self.events.iter().zip(events) {
            counter.add(count);
        }
        self.spans(&applied.spans);
        self.renewals(&applied.replies, applied.late_renewals.into());
    }

    fn spans(&self, spans: &[Span]) {
        let mut handoffs = 0;
        for Span { ms, of } in spans {
            let histogram = match of {
                SpanOf::Wait(end) => self.waits.get(wait_end(*end)),
                SpanOf::Lease(end) => self.holds.get(lease_end(*end)),
            };
            if let Some(histogram) = histogram {
                histogram.record(*ms);
            }
            handoffs += u64::from(*of == SpanOf::Wait(WaitEnd::Granted));
        }
        self.handoffs.add(handoffs);
    }

    fn renewals(&self, replies: &[Placed<Reply>], late: u64) {
        let (mut renewed, mut lost, mut rejected) = (0_u64, 0, 0);
        for reply in replies {
            let Reply::Renew(leases) = &reply.value else { continue };
            for lease in leases {
                match lease {
                    RenewReply::Renewed { .. } => renewed += 1,
                    RenewReply::NotHolder(_) => lost += 1,
                    RenewReply::OutOfPolicy(_) => rejected += 1,
                }
            }
        }
        self.renewed.add(renewed.saturating_sub(late));
        self.renewed_late.add(late);
        self.renewals_lost.add(lost);
        self.renewals_rejected.add(rejected);
    }

    /// Takes up that somebody else leads now, or nobody any more.
    pub(crate) fn lead_changed(&self, before: &Lead, now: &Lead) {
        if let (Lead::Nobody { since, .. }, Lead::Here | Lead::At { .. }) = (before, now) {
            self.election.record_time(kunci_process::now().saturating_duration_since(*since));
        }
    }

    /// Each kind of event, by its name on the wire, with how many were applied.
    pub fn events_by_kind(&self) -> impl Iterator<Item = (&'static str, u64)> {
        EVENT_KINDS.into_iter().zip(self.events.iter().map(Counter::get))
    }

    /// Each way for a wait to end, by its name, with how long such waits took.
    pub fn waits_by_end(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        WAIT_ENDS.into_iter().zip(&self.waits)
    }

    /// Each way for a lease to end, by its name, with how long such leases were held.
    pub fn holds_by_end(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        LEASE_ENDS.into_iter().zip(&self.holds)
    }
}
