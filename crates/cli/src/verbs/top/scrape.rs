//! `/metrics`, read.
//!
//! Owns: Prometheus' text format, as far as kunci writes it. Never: what a number means; see `numbers`.

use std::collections::BTreeMap;

/// More series than a node has.
const SERIES_MAX: usize = 20_000;

/// One series.
#[derive(Clone, Debug, PartialEq)]
struct Series {
    labels: Vec<(String, String)>,
    value: f64,
}

/// What one node's `/metrics` said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scrape {
    by_name: BTreeMap<String, Vec<Series>>,
}

/// Which series of a name are meant: those with all of these labels.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

impl Scrape {
    /// Reads the text; a line that isn't understood is passed over.
    pub(super) fn read(text: &str) -> Self {
        let mut scrape = Self::default();
        for (name, series) in text.lines().take(SERIES_MAX).filter_map(read_line) {
            scrape.by_name.entry(name).or_default().push(series);
        }
        scrape
    }

    /// The sum of the series of this name with these labels; nothing when there is none.
    pub(super) fn sum(&self, name: &str, labels: Labels<'_>) -> Option<f64> {
        let found = self.of(name, labels).map(|series| series.value);
        found.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }

    /// The buckets of a histogram, upper bound and cumulated count, smallest bound first; those of several series added up.
    pub(super) fn buckets(&self, name: &str, labels: Labels<'_>) -> Vec<(f64, f64)> {
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for series in self.of(&format!("{name}_bucket"), labels) {
            let bound =
                series.labels.iter().find(|(label, _)| label == "le").and_then(|(_, bound)| number(bound));
            let Some(bound) = bound else { continue };
            match buckets.iter_mut().find(|(other, _)| *other == bound) {
                Some((_, count)) => *count += series.value,
                None => buckets.push((bound, series.value)),
            }
        }
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        buckets
    }

    fn of(&self, name: &str, labels: Labels<'_>) -> impl Iterator<Item = &Series> {
        let all = self.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        let is_meant = |series: &&Series| {
            let has = |(label, value): &(&str, &str)| {
                series.labels.iter().any(|(name, found)| name == label && found == value)
            };
            labels.iter().all(has)
        };
        all.iter().filter(is_meant)
    }
}

fn read_line(line: &str) -> Option<(String, Series)> {
    if line.starts_with('#') {
        return None;
    }
    let (name, labels, rest) = match line.split_once('{') {
        Some((name, rest)) => {
            let (labels, rest) = read_labels(rest)?;
            (name, labels, rest)
        }
        None => {
            let (name, rest) = line.split_once(' ')?;
            (name, Vec::new(), rest)
        }
    };
    let value = number(rest.split_whitespace().next()?)?;
    Some((name.trim().to_owned(), Series { labels, value }))
}

/// Reads labels up to the closing brace, and what follows it.
fn read_labels(text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (label, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at + 1,
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.push((label.trim().to_owned(), value));
        rest = after.get(end..)?;
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| !number.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# HELP kunci_held_leases Leases that are current.
# TYPE kunci_held_leases gauge
kunci_held_leases 3
kunci_refusals_total{code=\"held\"} 4
kunci_refusals_total{code=\"a\\\"},b\"} 5 1700000000
kunci_x_seconds_bucket{outcome=\"granted\",le=\"0.01\"} 1
kunci_x_seconds_bucket{outcome=\"granted\",le=\"+Inf\"} 2
kunci_x_seconds_bucket{outcome=\"refused\",le=\"0.01\"} 10
kunci_x_seconds_bucket{outcome=\"refused\",le=\"+Inf\"} 10
nonsense{ 4
kunci_nothing NaN
";

    #[test]
    fn numbers_are_found_by_name_and_labels() {
        let scrape = Scrape::read(TEXT);
        assert_eq!(scrape.sum("kunci_held_leases", &[]), Some(3.0));
        assert_eq!(scrape.sum("kunci_refusals_total", &[]), Some(9.0));
        assert_eq!(scrape.sum("kunci_refusals_total", &[("code", "a\"},b")]), Some(5.0));
        for name in ["kunci_nothing", "nonsense", "kunci_gone"] {
            assert_eq!(scrape.sum(name, &[]), None, "{name}");
        }
    }

    #[test]
    fn histograms_of_several_series_are_added_up() {
        let scrape = Scrape::read(TEXT);
        assert_eq!(scrape.buckets("kunci_x_seconds", &[]), [(0.01, 11.0), (f64::INFINITY, 12.0)]);
        let granted = scrape.buckets("kunci_x_seconds", &[("outcome", "granted")]);
        assert_eq!(granted, [(0.01, 1.0), (f64::INFINITY, 2.0)]);
    }
}
