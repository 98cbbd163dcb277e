//! How long a command takes on a table of so many held resources: `cargo bench --package kunci-core --bench time`.
//!
//! Owns: a table whose size doesn't drift while it is measured: what is acquired is released, and what is over forgotten,
//! beside the clock. A clone of a full table would be another thing to measure: it shares, and copies what is changed.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a tool for measuring")]

mod filled;

use criterion::measurement::{Measurement as _, WallTime};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use filled::{AT_ONCE, Filled, SHORT, at, first, name, release, renew, second};
use kunci_core::LockTable;
use kunci_core::command::{Command, Entry};
use kunci_types::{Policy, Wait};
use std::hint::black_box;
use std::time::Duration;

/// Resources that are held while something is measured.
const SIZES: [u64; 3] = [100, 100_000, 1_000_000];
/// 300 days: longer than the cluster time of all measurements.
const HELD_FOR_MS: u64 = 300 * 24 * 3_600_000;
/// An ended request is remembered for so long: the shortest that a policy may say.
const RETRY_WINDOW_MS: u64 = 10_000;
/// So many are done before their traces are removed.
const CHUNK: u64 = 1_000;
/// Leases that end together.
const TOGETHER: u64 = 20_000;

/// What is measured of the life of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Acquire,
    Retry,
    TryOfAHeldOne,
    Queue,
    HandOff,
    Release,
    Renew,
    Status,
}

const STEPS: [Step; 8] = [
    Step::Acquire,
    Step::Retry,
    Step::TryOfAHeldOne,
    Step::Queue,
    Step::HandOff,
    Step::Release,
    Step::Renew,
    Step::Status,
];

/// A table, its clock, and numbers that were never used on it.
struct Bench {
    filled: Filled,
    now_ms: u64,
    lane: u64,
}

impl Bench {
    fn with(held: u64) -> Self {
        let policy = Policy {
            ttl_ms_max: HELD_FOR_MS,
            total_hold_ms_max: HELD_FOR_MS,
            retry_window_ms: RETRY_WINDOW_MS,
            leases_max: 4 * held.max(TOGETHER),
            leases_per_namespace_max: 4 * held.max(TOGETHER),
            ..Policy::default()
        };
        // Every other one is released.
        let mut bench = Self { filled: Filled::with(2 * held, policy), now_ms: 0, lane: 0 };
        bench.forget();
        bench
    }

    fn entries(&self, numbers: &[u64], command: impl Fn(u64) -> Command) -> Vec<Entry> {
        numbers.iter().map(|number| at(self.now_ms, vec![command(*number)])).collect()
    }

    /// Forgets the requests that are over.
    fn forget(&mut self) {
        self.now_ms += RETRY_WINDOW_MS + 1;
        self.filled.table.apply(&at(self.now_ms, Vec::new()));
    }

    /// The whole life of `count` locks, of which one step is timed.
    fn life(&mut self, step: Step, count: u64) -> Duration {
        let new = self.filled.unseen(self.lane, count);
        self.lane += 1;
        let wait = Wait::UpToMs(20_000);
        let mut time = Duration::ZERO;
        let steps = [
            (Step::Acquire, self.entries(&new, |number| first(number, Wait::Try))),
            (Step::Retry, self.entries(&new, |number| first(number, Wait::Try))),
            (Step::Queue, self.entries(&new, |number| second(number, wait))),
            (Step::HandOff, self.entries(&new, |number| release(number, 0))),
            (Step::Release, self.entries(&new, |number| release(number, 1))),
        ];
        for (of, entries) in &steps {
            let took = timed(&mut self.filled.table, entries);
            time += if *of == step { took } else { Duration::ZERO };
        }
        self.forget();
        time
    }

    /// What changes nothing that lasts, on the resources that are held.
    fn on_held(&mut self, step: Step, count: u64) -> Duration {
        let held = self.filled.held(count);
        if step == Step::Status {
            let names: Vec<_> = held.iter().map(|number| name(*number)).collect();
            let began = WallTime.start();
            for name in &names {
                black_box(self.filled.table.status(name));
            }
            return WallTime.end(began);
        }
        let entries = match step {
            Step::Renew => self.entries(&held, renew),
            _ => self.entries(&held, |number| second(number, Wait::Try)),
        };
        timed(&mut self.filled.table, &entries)
    }

    fn measure(&mut self, step: Step, mut count: u64) -> Duration {
        let mut time = Duration::ZERO;
        while count > 0 {
            let now = count.min(CHUNK);
            time += match step {
                Step::TryOfAHeldOne | Step::Renew | Step::Status => self.on_held(step, now),
                _ => self.life(step, now),
            };
            count -= now;
        }
        time
    }

    /// The entry at which 20,000 leases are over.
    fn expire(&mut self) -> Duration {
        let new = self.filled.unseen(self.lane, TOGETHER);
        self.lane += 1;
        for numbers in new.chunks(usize::try_from(AT_ONCE).unwrap()) {
            let commands = numbers.iter().map(|number| first(*number, Wait::Try)).collect();
            self.filled.table.apply(&at(self.now_ms, commands));
        }
        self.now_ms += SHORT.as_ms() + 1;
        let time = timed(&mut self.filled.table, &[at(self.now_ms, Vec::new())]);
        self.forget();
        time
    }
}

fn timed(table: &mut LockTable, entries: &[Entry]) -> Duration {
    let began = WallTime.start();
    for entry in entries {
        black_box(table.apply(entry));
    }
    WallTime.end(began)
}

fn of_size(criterion: &mut Criterion, held: u64) {
    let mut bench = Bench::with(held);
    let mut group = criterion.benchmark_group("core");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    for step in STEPS {
        let id = BenchmarkId::new(format!("{step:?}"), held);
        group.bench_function(id, |bencher| bencher.iter_custom(|count| bench.measure(step, count)));
    }
    group.bench_function(BenchmarkId::new("ExpiryOf20000", held), |bencher| {
        bencher.iter_custom(|count| (0..count).map(|_| bench.expire()).sum());
    });
    group.bench_function(BenchmarkId::new("SnapshotTaken", held), |bencher| {
        bencher.iter(|| black_box(bench.filled.table.snapshot()));
    });
    group.bench_function(BenchmarkId::new("SnapshotInBytes", held), |bencher| {
        let snapshot = bench.filled.table.snapshot();
        bencher.iter(|| snapshot.chunks().map(|chunk| chunk.len()).sum::<usize>());
    });
    group.finish();
}

fn codec(criterion: &mut Criterion) {
    let commands: Vec<Command> = (0..100).map(|number| first(number, Wait::Try)).collect();
    let entry = at(0, commands);
    let bytes = entry.encode();
    let mut group = criterion.benchmark_group("entry of 100 acquires");
    group.bench_function("encode", |bencher| bencher.iter(|| black_box(&entry).encode()));
    group.bench_function("decode", |bencher| bencher.iter(|| Entry::decode(black_box(&bytes)).unwrap()));
    group.finish();
}

fn core(criterion: &mut Criterion) {
    SIZES.into_iter().for_each(|held| of_size(criterion, held));
}

criterion_group!(benches, codec, core);
criterion_main!(benches);
