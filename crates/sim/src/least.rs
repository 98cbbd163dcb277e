//! What a run has to come to at least, so that a change can't quietly make it smaller.
//!
//! Owns: the minimums, and the words for what is missing. Never: what was broken in a world.

use clap::Args;
use kunci_sim::faults;
use kunci_sim::report::Counts;

/// What a run has to come to at least.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Least {
    /// Fail unless each kind of fault struck so often.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    faults_least: u64,
    /// Fail unless so many faults struck in a world, on average.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    faults_a_seed_least: u64,
    /// Fail unless so many hours were simulated.
    #[arg(long, value_name = "HOURS", default_value_t = 0)]
    hours_least: u64,
    /// Fail unless so many operations of clients were checked for each simulated second.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    operations_least: u64,
    /// Fail unless so many of a hundred worlds began with five members.
    #[arg(long, value_name = "PERCENT", default_value_t = 0)]
    fives_least: u64,
}

impl Least {
    /// What the run lacks.
    pub(crate) fn lacks(&self, counts: &Counts) -> Vec<String> {
        let seconds = counts.time.as_secs();
        let mut lacks = Vec::new();
        let mut want = |is_enough: bool, what: String| {
            if !is_enough {
                lacks.push(what);
            }
        };
        want(seconds >= self.hours_least * 3_600, format!("{} simulated hours", self.hours_least));
        want(
            counts.operations >= self.operations_least * seconds,
            format!("{} operations a simulated second", self.operations_least),
        );
        want(
            counts.fault_count() >= self.faults_a_seed_least * counts.seeds,
            format!("{} faults a seed", self.faults_a_seed_least),
        );
        want(
            counts.seeds_of_five * 100 >= self.fives_least * counts.seeds,
            format!("{} % of the seeds with five members", self.fives_least),
        );
        for kind in faults::ALL {
            let count = counts.faults.get(kind.name).copied().unwrap_or(0);
            want(
                count >= self.faults_least,
                format!("{} of {}, found {count}", self.faults_least, kind.name),
            );
        }
        lacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind of fault that doesn't strike any more fails the run, and so does each other minimum.
    #[test]
    fn a_run_that_is_too_small_says_in_what() {
        let least = Least {
            faults_least: 2,
            faults_a_seed_least: 1,
            hours_least: 1,
            operations_least: 10,
            fives_least: 50,
        };
        let mut counts = Counts { seeds: 2, seeds_of_five: 1, operations: 36_000, ..Counts::default() };
        counts.time = std::time::Duration::from_secs(3_600);
        counts.faults = faults::ALL.iter().map(|kind| (kind.name, 2)).collect();
        assert_eq!(least.lacks(&counts), Vec::<String>::new());
        counts.faults.insert("kill", 1);
        assert_eq!(least.lacks(&counts), ["2 of kill, found 1"]);
        counts.faults.clear();
        counts.operations = 0;
        counts.seeds_of_five = 0;
        counts.time -= std::time::Duration::from_secs(1);
        assert_eq!(least.lacks(&counts).len(), 4 + faults::ALL.len());
        assert_eq!(Least::default().lacks(&Counts::default()), Vec::<String>::new());
    }
}
