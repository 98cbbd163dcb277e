//! What went by, counted.
//!
//! Owns: the counters and their text for Prometheus. Never: a label that grows with resources or peers.

use super::connection::Front;
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

/// How a request ended here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A fenced one went on.
    Fenced,
    /// It needed no token and went on.
    Open,
    /// Its token is older than the admitted one.
    Rejected,
    /// An older one hasn't ended for certain.
    Undrained,
    /// It can't be used as it is, or a rule forbids it.
    Refused,
    /// The gate can't admit it.
    GateFailed,
    /// The upstream couldn't be reached; nothing was sent.
    Unreachable,
    /// The upstream, or the client, didn't bring it to its end.
    Broken,
}

impl Outcome {
    const ALL: [(Self, &str); 8] = [
        (Self::Fenced, "fenced"),
        (Self::Open, "open"),
        (Self::Rejected, "rejected"),
        (Self::Undrained, "undrained"),
        (Self::Refused, "refused"),
        (Self::GateFailed, "gate_failed"),
        (Self::Unreachable, "unreachable"),
        (Self::Broken, "broken"),
    ];
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(super) struct Traffic([AtomicU64; Outcome::ALL.len()]);

impl Traffic {
    pub(super) fn count(&self, outcome: Outcome) {
        if let Some(counter) = self.0.get(outcome as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The numbers, in Prometheus' text format.
pub(super) fn text(front: &Front) -> String {
    let mut text = String::new();
    // Writing to a text can't fail.
    let _ = write_all(front, &mut text);
    text
}

fn write_all(front: &Front, text: &mut String) -> fmt::Result {
    let name = "kunci_fence_requests_total";
    writeln!(text, "# HELP {name} Requests by what became of them here.\n# TYPE {name} counter")?;
    for ((_, label), counter) in Outcome::ALL.iter().zip(&front.traffic.0) {
        writeln!(text, "{name}{{outcome=\"{label}\"}} {}", counter.load(Ordering::Relaxed))?;
    }
    let passages = &front.passages;
    let gauges = [
        ("kunci_fence_on_the_way", "Fenced requests that the upstream has.", passages.on_the_way() as u64),
        ("kunci_fence_waiting", "Requests that wait for older ones to end.", passages.waiting() as u64),
        ("kunci_fence_resources", "Resources whose token is kept.", passages.gate().resources() as u64),
        (
            "kunci_fence_gate_up",
            "1 while newer tokens can be admitted.",
            u64::from(passages.gate().check().is_ok()),
        ),
    ];
    for (name, help, value) in gauges {
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}")?;
    }
    let Some(reporter) = &front.reporter else { return Ok(()) };
    let (name, counts) = ("kunci_fence_reports_total", reporter.counts());
    writeln!(
        text,
        "# HELP {name} Rejections to report to kunci, by what became of it.\n# TYPE {name} counter"
    )?;
    for (label, count) in [("told", counts.told), ("dropped", counts.dropped), ("failed", counts.failed)] {
        writeln!(text, "{name}{{outcome=\"{label}\"}} {count}")?;
    }
    Ok(())
}
