//! What came of a world, or of many.
//!
//! Owns: the counts, and what was broken. Never: judges.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::Duration;

/// Something that must always hold and didn't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The property, by the name of its file.
    pub property: &'static str,
    /// What was found, and what was expected.
    pub what: String,
}

/// What happened how often.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Worlds.
    pub seeds: u64,
    /// Those that began with five members.
    pub seeds_of_five: u64,
    /// Simulated time.
    pub time: Duration,
    /// Operations of clients whose answers were checked.
    pub operations: u64,
    /// Faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Times that a node began to lead.
    pub leader_changes: u64,
    /// Leases that began.
    pub grants: u64,
    /// Leases that time ended.
    pub expiries: u64,
    /// Comparisons of two nodes' states at the same index.
    pub digests_compared: u64,
}

impl Counts {
    /// All faults.
    pub fn fault_count(&self) -> u64 {
        self.faults.values().sum()
    }

    /// Adds those of another world.
    pub fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.seeds_of_five += other.seeds_of_five;
        self.time += other.time;
        self.operations += other.operations;
        self.leader_changes += other.leader_changes;
        self.grants += other.grants;
        self.expiries += other.expiries;
        self.digests_compared += other.digests_compared;
        for (kind, count) in &other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time.as_secs_f64();
        let seeds = self.seeds.max(1);
        writeln!(
            f,
            "simulated hours  {:.3} in {} seeds, {} of five members",
            seconds / 3_600.0,
            self.seeds,
            self.seeds_of_five
        )?;
        let a_second = self.operations as f64 / seconds.max(1.0);
        writeln!(f, "operations       {}, {a_second:.1} a simulated second", self.operations)?;
        writeln!(
            f,
            "faults           {}, {:.1} a seed",
            self.fault_count(),
            self.fault_count() as f64 / seeds as f64
        )?;
        let mut kinds = String::new();
        for (kind, count) in &self.faults {
            write!(kinds, "{}{kind} {count}", if kinds.is_empty() { "" } else { ", " })?;
        }
        writeln!(f, "                 {kinds}")?;
        writeln!(f, "leader changes   {}", self.leader_changes)?;
        writeln!(f, "grants           {}, of which time ended {}", self.grants, self.expiries)?;
        write!(f, "states compared  {}", self.digests_compared)
    }
}

/// What came of one world.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// The hash of its trace.
    pub hash: u64,
    /// What happened how often.
    pub counts: Counts,
    /// What was broken, in the order in which it was found.
    pub broken: Vec<Broken>,
    /// The trace's lines, if they were kept.
    pub trace: String,
}
