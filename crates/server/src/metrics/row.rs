//! One number's name and meaning, and how it is read.
//!
//! Owns: the form of a row of the table, and of the samples that it gives. Never: which rows there are.

use super::sources::Sources;
use kunci_replica::measures::Histogram;
use prometheus::proto::{self, MetricFamily, MetricType};

/// One number, or one for each value of its labels.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) labels: &'static [Label],
    /// For people, in Markdown.
    pub(super) meaning: &'static str,
    pub(super) read: fn(&Sources<'_>, &mut Samples),
}

/// What a number does as time goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows, from 0 at the process's start.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It counts values by size.
    Histogram,
}

/// What tells several numbers of one name apart.
pub(super) struct Label {
    pub(super) name: &'static str,
    /// What it can be, in Markdown; empty where the page says it in its text.
    pub(super) values: &'static str,
}

/// Numbers under one heading of the page.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) rows: &'static [Row],
    /// What the page says below the table.
    pub(super) below: &'static str,
}

/// A label with these values.
pub(super) const fn label(name: &'static str, values: &'static str) -> Label {
    Label { name, values }
}

impl Row {
    pub(super) const fn counter(
        name: &'static str,
        labels: &'static [Label],
        meaning: &'static str,
        read: fn(&Sources<'_>, &mut Samples),
    ) -> Self {
        Self { name, kind: Kind::Counter, labels, meaning, read }
    }

    pub(super) const fn gauge(
        name: &'static str,
        labels: &'static [Label],
        meaning: &'static str,
        read: fn(&Sources<'_>, &mut Samples),
    ) -> Self {
        Self { name, kind: Kind::Gauge, labels, meaning, read }
    }

    pub(super) const fn histogram(
        name: &'static str,
        labels: &'static [Label],
        meaning: &'static str,
        read: fn(&Sources<'_>, &mut Samples),
    ) -> Self {
        Self { name, kind: Kind::Histogram, labels, meaning, read }
    }

    /// What there is to show of it; `None` when there is nothing.
    pub(super) fn family(&self, sources: &Sources<'_>) -> Option<MetricFamily> {
        let mut samples = Samples { kind: self.kind, of: Vec::new() };
        (self.read)(sources, &mut samples);
        if samples.of.is_empty() {
            return None;
        }
        let mut family = MetricFamily::default();
        family.set_name(self.name.to_owned());
        family.set_help(self.meaning.to_owned());
        family.set_field_type(match self.kind {
            Kind::Counter => MetricType::COUNTER,
            Kind::Gauge => MetricType::GAUGE,
            Kind::Histogram => MetricType::HISTOGRAM,
        });
        family.set_metric(samples.of);
        Some(family)
    }
}

/// The samples of one row.
pub(super) struct Samples {
    kind: Kind,
    of: Vec<proto::Metric>,
}

/// The unit of a histogram's values: how many make a second, or whatever is shown.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    /// Microseconds, shown as seconds.
    Micros,
    /// Milliseconds, shown as seconds.
    Millis,
    /// Shown as they are.
    One,
}

impl Unit {
    /// A value in it as it is shown.
    pub(super) fn shown(self, value: u64) -> f64 {
        let parts = match self {
            Self::Micros => 1_000_000.0,
            Self::Millis => 1_000.0,
            Self::One => 1.0,
        };
        number(value) / parts
    }
}

impl Samples {
    /// The one number.
    pub(super) fn one(&mut self, value: u64) {
        self.labelled(&[], number(value));
    }

    /// The one number, in another unit.
    pub(super) fn one_in(&mut self, unit: Unit, value: u64) {
        self.labelled(&[], unit.shown(value));
    }

    /// 1 when it is so, else 0.
    pub(super) fn is_so(&mut self, is_so: bool) {
        self.one(is_so.into());
    }

    /// The number under these labels.
    pub(super) fn under(&mut self, labels: &[(&str, &str)], value: u64) {
        self.labelled(labels, number(value));
    }

    /// The number under these labels, as it is.
    pub(super) fn labelled(&mut self, labels: &[(&str, &str)], value: f64) {
        let mut metric = metric(labels);
        match self.kind {
            Kind::Counter => {
                let mut counter = proto::Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            }
            Kind::Gauge | Kind::Histogram => {
                let mut gauge = proto::Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
        }
        self.of.push(metric);
    }

    /// A histogram under these labels.
    pub(super) fn spread(&mut self, labels: &[(&str, &str)], unit: Unit, histogram: &Histogram) {
        let mut shown = proto::Histogram::default();
        let mut total = 0;
        let buckets = histogram.up_to().map(|(bound, count)| {
            total = count;
            let mut bucket = proto::Bucket::default();
            bucket.set_upper_bound(unit.shown(bound));
            bucket.set_cumulative_count(count);
            bucket
        });
        shown.set_bucket(buckets.collect());
        shown.set_sample_count(total + histogram.beyond());
        shown.set_sample_sum(unit.shown(histogram.sum()));
        let mut metric = metric(labels);
        metric.set_histogram(shown);
        self.of.push(metric);
    }
}

fn metric(labels: &[(&str, &str)]) -> proto::Metric {
    let pairs = labels.iter().map(|(name, value)| {
        let mut pair = proto::LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    });
    proto::Metric::from_label(pairs.collect())
}

/// Exact up to 2^53, as the format has it.
#[expect(clippy::as_conversions, reason = "Prometheus knows floating point only")]
fn number(value: u64) -> f64 {
    value as f64
}
