//! Many worlds, several at a time.
//!
//! Owns: which thread runs which seed, the sum, and a word on it now and then. Never: stops at a failure; the others may
//! fail differently.

use crate::least::Least;
use crate::show_broken;
use kunci_sim::plan::Plan;
use kunci_sim::report::Counts;
use kunci_sim::trace::Lines;
use kunci_sim::world;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// From one word on how far it is to the next.
const TOLD_EVERY: Duration = Duration::from_secs(30);
/// Failures that are shown in full; of the others the seed and the property.
const SHOWN_MAX: usize = 10;

/// Many worlds, several at a time.
pub(crate) struct Batch {
    threads: usize,
    began: Duration,
    sum: Mutex<Sum>,
}

/// What they come to.
#[derive(Clone, Default)]
pub(crate) struct Sum {
    counts: Counts,
    /// The seeds that failed, and what was broken there first.
    failed: BTreeMap<u64, &'static str>,
    /// How long they took.
    took: Duration,
    told: Duration,
}

impl Batch {
    /// None yet.
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads: threads.max(1), began: uptime(), sum: Mutex::default() }
    }

    /// Runs them, until the last or until `is_enough`.
    pub(crate) fn run(&self, seeds: Range<u64>, is_enough: impl Fn(&Counts) -> bool + Sync) -> Sum {
        let next = AtomicU64::new(seeds.start);
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= seeds.end || is_enough(&self.sum().counts) {
                            return;
                        }
                        self.run_one(seed);
                        self.tell();
                    }
                });
            }
        });
        let mut sum = self.sum().clone();
        sum.took = uptime().saturating_sub(self.began);
        sum
    }

    fn run_one(&self, seed: u64) {
        match world::run(&Plan::drawn(seed), Lines::Dropped) {
            Ok(report) => {
                let mut sum = self.sum();
                sum.counts.add(&report.counts);
                let Some(first) = report.broken.first() else { return };
                if sum.failed.len() < SHOWN_MAX {
                    show_broken(&report);
                }
                sum.failed.insert(seed, first.property);
            }
            Err(why) => {
                self.sum().failed.insert(seed, "simulator");
                println!("seed {seed}: the simulator failed: {why}");
            }
        }
    }

    /// Says now and then how far it is.
    fn tell(&self) {
        let mut sum = self.sum();
        let took = uptime().saturating_sub(self.began);
        if took.saturating_sub(sum.told) >= TOLD_EVERY {
            sum.told = took;
            println!(
                "{:>5} s: {} seeds, {:.2} simulated hours, {} faults, {} failed",
                took.as_secs(),
                sum.counts.seeds,
                sum.counts.time.as_secs_f64() / 3_600.0,
                sum.counts.fault_count(),
                sum.failed.len()
            );
        }
    }

    fn sum(&self) -> MutexGuard<'_, Sum> {
        self.sum.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sum {
    /// Shows it, and says whether everything held and the run was as large as it has to be.
    pub(crate) fn is_well(&self, least: &Least) -> bool {
        println!("{}", self.counts);
        println!("took             {} s", self.took.as_secs());
        let lacks = least.lacks(&self.counts);
        for lack in &lacks {
            println!("too little       expected at least {lack}");
        }
        for (seed, property) in &self.failed {
            println!("failed           seed {seed}, {property}: cargo xtask sim {seed} --trace");
        }
        lacks.is_empty() && self.failed.is_empty()
    }
}

/// How long the machine has run.
fn uptime() -> Duration {
    let shown = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // Neither is negative.
    Duration::new(shown.tv_sec.unsigned_abs(), u32::try_from(shown.tv_nsec).unwrap_or(0))
}
