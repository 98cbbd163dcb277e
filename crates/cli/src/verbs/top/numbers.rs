//! What a node's numbers say over the last seconds.
//!
//! Owns: rates and quantiles from scrapes that lie apart. Never: asks; never a clock.

use super::scrape::{Labels, Scrape};
use kunci_client::Moment;
use std::collections::VecDeque;
use std::time::Duration;

/// Rates and quantiles are over this long: short enough to see what just began, long enough not to jump.
const WINDOW: Duration = Duration::from_secs(10);
/// However often a node is asked, no more of it is kept.
const SCRAPES_MAX: usize = 64;

/// The last scrapes of one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    scrapes: VecDeque<(Moment, Scrape)>,
}

impl Numbers {
    /// Takes in what `/metrics` said.
    pub(super) fn take(&mut self, at: Moment, scrape: Scrape) {
        self.scrapes.push_back((at, scrape));
        let is_old = |first: &(Moment, Scrape)| at.since(first.0) > WINDOW;
        while self.scrapes.len() > SCRAPES_MAX || self.scrapes.front().is_some_and(is_old) {
            self.scrapes.pop_front();
        }
    }

    /// Forgets them: the node doesn't answer, and old rates aren't today's.
    pub(super) fn forget(&mut self) {
        self.scrapes.clear();
    }

    /// A gauge as it was last, series added up.
    pub(super) fn gauge(&self, name: &str, labels: Labels<'_>) -> Option<f64> {
        self.scrapes.back()?.1.sum(name, labels)
    }

    /// How much a counter grew in a second; nothing as long as it was seen only once.
    pub(super) fn per_second(&self, name: &str, labels: Labels<'_>) -> Option<f64> {
        let (first, last, seconds) = self.ends()?;
        let (from, to) = (first.sum(name, labels).unwrap_or(0.0), last.sum(name, labels)?);
        Some(growth(from, to) / seconds)
    }

    /// How a histogram's buckets grew.
    pub(super) fn grown(&self, name: &str, labels: Labels<'_>) -> Vec<(f64, f64)> {
        let Some((first, last, _)) = self.ends() else { return Vec::new() };
        let before = first.buckets(name, labels);
        let was =
            |bound: f64| before.iter().find(|(other, _)| *other == bound).map_or(0.0, |(_, count)| *count);
        let grown =
            last.buckets(name, labels).into_iter().map(|(bound, count)| (bound, growth(was(bound), count)));
        grown.collect()
    }

    fn ends(&self) -> Option<(&Scrape, &Scrape, f64)> {
        let (first, last) = (self.scrapes.front()?, self.scrapes.back()?);
        let seconds = last.0.since(first.0).as_secs_f64();
        (seconds > 0.0).then_some((&first.1, &last.1, seconds))
    }
}

/// A counter that is smaller than before began anew.
fn growth(from: f64, to: f64) -> f64 {
    if to < from { to } else { to - from }
}

/// Adds the buckets of another node.
pub(super) fn add(sum: &mut Vec<(f64, f64)>, other: Vec<(f64, f64)>) {
    if sum.is_empty() {
        *sum = other;
        return;
    }
    for (bound, count) in other {
        if let Some((_, total)) = sum.iter_mut().find(|(known, _)| *known == bound) {
            *total += count;
        }
    }
}

/// The quantile of a histogram in ms, by even spread within a bucket as Prometheus does it; nothing for an empty one.
pub(super) fn quantile_ms(part: f64, buckets: &[(f64, f64)]) -> Option<f64> {
    let total = buckets.last()?.1;
    if total <= 0.0 {
        return None;
    }
    let wanted = part * total;
    let (mut below, mut counted) = (0.0, 0.0);
    for (bound, count) in buckets {
        if *count >= wanted {
            let within = if *count > counted { (wanted - counted) / (count - counted) } else { 1.0 };
            let value = if bound.is_finite() { below + (bound - below) * within } else { below };
            return Some(value * 1_000.0);
        }
        (below, counted) = (*bound, *count);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    fn counted(of: &[(u64, u64)]) -> Numbers {
        let mut numbers = Numbers::default();
        for (second, count) in of {
            numbers.take(at(*second), Scrape::read(&format!("n_total {count}")));
        }
        numbers
    }

    #[test]
    fn a_rate_is_over_the_last_ten_seconds() {
        assert_eq!(counted(&[(1, 5)]).per_second("n_total", &[]), None);
        assert_eq!(counted(&[(1, 5), (3, 25)]).per_second("n_total", &[]), Some(10.0));
        assert_eq!(counted(&[(1, 0), (100, 100), (101, 120)]).per_second("n_total", &[]), Some(20.0));
    }

    #[test]
    fn a_restarted_node_counts_from_nothing() {
        assert_eq!(counted(&[(1, 500), (3, 8)]).per_second("n_total", &[]), Some(4.0));
    }

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let buckets = [(0.001, 0.0), (0.01, 50.0), (0.1, 100.0), (f64::INFINITY, 100.0)];
        assert_eq!(quantile_ms(0.5, &buckets).map(f64::round), Some(10.0));
        assert_eq!(quantile_ms(0.75, &buckets).map(f64::round), Some(55.0));
        assert_eq!(quantile_ms(0.5, &[(0.1, 0.0), (f64::INFINITY, 4.0)]).map(f64::round), Some(100.0));
        assert_eq!(quantile_ms(0.5, &[(0.1, 0.0)]), None);
        assert_eq!(quantile_ms(0.5, &[]), None);
    }
}
