//! What came of each operation.
//!
//! Owns: counting, and histograms whose memory doesn't grow with time. Never: decides what is counted; see `stage`.

use crate::report::{KindReport, Latency};
use crate::stage::Stage;
use hdrhistogram::{CreationError, Histogram};
use kunci_client::Moment;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The longest latency that is told apart, in µs: an hour. A longer one counts as that.
const MICROS_MAX: u64 = 3_600_000_000;
/// A figure differs from what was measured by less than one in a thousand.
const DIGITS: u8 = 3;

/// What a latency is the latency of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// From an acquire to its grant, the wait included.
    Acquire,
    /// From a renewal to its answer.
    Renew,
    /// From a release to its answer.
    Release,
    /// From a status request to its answer.
    Status,
    /// From a release to the grant of the next in the queue: no request of its own.
    HandOff,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Acquire, Self::Renew, Self::Release, Self::Status, Self::HandOff];

    fn name(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Status => "status",
            Self::HandOff => "hand-off",
        }
    }

    fn is_request(self) -> bool {
        self != Self::HandOff
    }
}

/// An operation that went wrong: a code of `docs/errors.md`, or a word of the client's or this bench's.
pub(crate) type FailureCode = &'static str;

#[derive(Debug)]
struct Page {
    micros: Histogram<u64>,
    /// Few: each code is a word that this program knows.
    errors: BTreeMap<FailureCode, u64>,
}

/// What happened since somebody last asked.
#[derive(Debug)]
struct Recent {
    micros: Histogram<u64>,
    errors: u64,
}

#[derive(Debug)]
struct Pages {
    kinds: BTreeMap<Kind, Page>,
    recent: Recent,
}

/// Where all clients of a run write.
#[derive(Debug)]
pub(crate) struct Book {
    stage: Arc<Stage>,
    pages: Mutex<Pages>,
}

/// How it went lately, warm-up included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lately {
    pub(crate) operations: u64,
    pub(crate) errors: u64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

fn histogram() -> Result<Histogram<u64>, CreationError> {
    Histogram::new_with_bounds(1, MICROS_MAX, DIGITS)
}

fn record(micros: &mut Histogram<u64>, latency: Duration) {
    micros.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(MICROS_MAX));
}

impl Book {
    pub(crate) fn new(stage: Arc<Stage>) -> Result<Self, CreationError> {
        let page = |kind| Ok((kind, Page { micros: histogram()?, errors: BTreeMap::new() }));
        let kinds = Kind::ALL.into_iter().map(page).collect::<Result<_, CreationError>>()?;
        let recent = Recent { micros: histogram()?, errors: 0 };
        Ok(Self { stage, pages: Mutex::new(Pages { kinds, recent }) })
    }

    /// Takes down an operation that was to start then and ends now.
    pub(crate) fn note(&self, kind: Kind, start: Moment, result: Result<(), FailureCode>) {
        let latency = self.stage.now().since(start);
        let counts = self.stage.counts(start);
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(()) if kind.is_request() => record(&mut pages.recent.micros, latency),
            Ok(()) => {}
            Err(_) => pages.recent.errors += 1,
        }
        let Some(page) = pages.kinds.get_mut(&kind).filter(|_| counts) else { return };
        match result {
            Ok(()) => record(&mut page.micros, latency),
            Err(code) => *page.errors.entry(code).or_default() += 1,
        }
    }

    /// How it went since the last call.
    pub(crate) fn lately(&self) -> Lately {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = &mut pages.recent;
        let quantile = |quantile| Duration::from_micros(recent.micros.value_at_quantile(quantile));
        let lately = Lately {
            operations: recent.micros.len(),
            errors: recent.errors,
            p50: quantile(0.5),
            p99: quantile(0.99),
        };
        recent.micros.reset();
        recent.errors = 0;
        lately
    }

    /// The figures of each kind of which there was one, over `seconds` that were counted.
    pub(crate) fn figures(&self, seconds: f64) -> Vec<KindReport> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let written =
            pages.kinds.iter().filter(|(_, page)| !page.micros.is_empty() || !page.errors.is_empty());
        let figures = written.map(|(kind, page)| {
            let errors = page.errors.iter().map(|(code, count)| ((*code).to_owned(), *count)).collect();
            let latency = (!page.micros.is_empty()).then(|| latency(&page.micros));
            KindReport::new((kind.name(), kind.is_request()), page.micros.len(), seconds, errors, latency)
        });
        figures.collect()
    }
}

fn latency(micros: &Histogram<u64>) -> Latency {
    Latency {
        min: micros.min(),
        p50: micros.value_at_quantile(0.5),
        p90: micros.value_at_quantile(0.9),
        p99: micros.value_at_quantile(0.99),
        p999: micros.value_at_quantile(0.999),
        max: micros.max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Pace, Plan, Workload};
    use kunci_client::RuntimeClock;
    use tokio::time::advance;
    use tokio_util::sync::CancellationToken;

    fn book() -> (Arc<Stage>, Book) {
        let plan = Plan { warm_up: Duration::ZERO, ..Plan::new(Workload::Reads, Pace::Closed) };
        let stage = Stage::begin(Arc::new(RuntimeClock::new()), &plan, CancellationToken::new());
        (stage.clone(), Book::new(stage).unwrap())
    }

    /// Latencies of 1 to `count` ms, as operations that all began at once.
    async fn noted(stage: &Stage, book: &Book, count: u64) {
        let start = stage.now();
        for _ in 0..count {
            advance(Duration::from_millis(1)).await;
            book.note(Kind::Renew, start, Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_quantile_is_right_to_one_in_a_thousand() {
        let (stage, book) = book();
        noted(&stage, &book, 1_000).await;
        let figures = book.figures(2.0).remove(0);
        assert_eq!((figures.kind, figures.operations, figures.per_second), ("renew", 1_000, 500.0));
        let Latency { min, p50, p90, p99, p999, max } = figures.latency_us.unwrap();
        let exact = [1_000, 500_000, 900_000, 990_000, 999_000, 1_000_000_u64];
        for (found, exact) in [min, p50, p90, p99, p999, max].into_iter().zip(exact) {
            assert!(found.abs_diff(exact) <= exact / 1_000, "found {found}, exact {exact}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_counted_by_its_code_and_is_in_no_latency() {
        let (stage, book) = book();
        book.note(Kind::Acquire, stage.now(), Err("held"));
        book.note(Kind::Acquire, stage.now(), Err("held"));
        book.note(Kind::Acquire, stage.now(), Err("no_leader"));
        let figures = book.figures(1.0).remove(0);
        assert_eq!((figures.operations, figures.latency_us), (0, None));
        assert_eq!(figures.errors, BTreeMap::from([("held".to_owned(), 2), ("no_leader".to_owned(), 1)]));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_longer_than_can_be_told_apart_counts_as_the_longest() {
        let (stage, book) = book();
        let start = stage.now();
        advance(Duration::from_secs(100_000)).await;
        book.note(Kind::Status, start, Ok(()));
        let max = book.figures(1.0)[0].latency_us.unwrap().max;
        assert!(max.abs_diff(MICROS_MAX) <= MICROS_MAX / 1_000, "{max}");
    }

    #[tokio::test(start_paused = true)]
    async fn lately_is_since_the_last_question_and_counts_requests_only() {
        let (stage, book) = book();
        noted(&stage, &book, 100).await;
        book.note(Kind::HandOff, stage.now(), Ok(()));
        book.note(Kind::Renew, stage.now(), Err("expired"));
        let lately = book.lately();
        assert_eq!((lately.operations, lately.errors), (100, 1));
        assert_eq!((lately.p50.as_millis(), lately.p99.as_millis()), (50, 99));
        let nothing = Lately { operations: 0, errors: 0, p50: Duration::ZERO, p99: Duration::ZERO };
        assert_eq!(book.lately(), nothing);
    }
}
