//! Many worlds, several at a time.
//!
//! Owns: which thread runs which seed, and the sum. Never: stops at a failure; the others may fail differently.

use crate::show_broken;
use kunci_sim::faults;
use kunci_sim::plan::Plan;
use kunci_sim::report::Counts;
use kunci_sim::trace::Lines;
use kunci_sim::world;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Many worlds, several at a time.
pub(crate) struct Batch {
    threads: usize,
    sum: Mutex<Sum>,
}

/// What they come to.
#[derive(Clone, Default)]
pub(crate) struct Sum {
    counts: Counts,
    failed: Vec<u64>,
}

impl Batch {
    /// None yet.
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads: threads.max(1), sum: Mutex::default() }
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
                    }
                });
            }
        });
        self.sum().clone()
    }

    fn run_one(&self, seed: u64) {
        match world::run(&Plan::drawn(seed), Lines::Dropped) {
            Ok(report) => {
                let mut sum = self.sum();
                sum.counts.add(&report.counts);
                if !report.broken.is_empty() {
                    sum.failed.push(seed);
                    show_broken(&report);
                }
            }
            Err(why) => {
                self.sum().failed.push(seed);
                println!("seed {seed}: the simulator failed: {why}");
            }
        }
    }

    fn sum(&self) -> MutexGuard<'_, Sum> {
        self.sum.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sum {
    /// Shows it, and says whether everything held and each kind of fault struck often enough.
    pub(crate) fn is_well(&self, faults_least: u64) -> bool {
        println!("{}", self.counts);
        let rare = faults::ALL.iter().filter_map(|kind| {
            let count = self.counts.faults.get(kind.name).copied().unwrap_or(0);
            (count < faults_least).then(|| format!("{} {count}", kind.name))
        });
        let rare: Vec<String> = rare.collect();
        if !rare.is_empty() {
            println!("too rare         {}: expected at least {faults_least} of each", rare.join(", "));
        }
        if !self.failed.is_empty() {
            println!("failed seeds     {:?}", self.failed);
        }
        rare.is_empty() && self.failed.is_empty()
    }
}
