//! The one table.
//!
//! Owns: medians, spreads, and ratios to kunci. Never: a figure without how many runs it is of.

use crate::Args;
use crate::load::{Measured, Workload};
use crate::machine;
use crate::peers::Peer;
use std::fmt;
use std::time::Duration;

/// All that was measured.
pub(crate) struct Results {
    found: Vec<(Peer, String)>,
    missing: Vec<String>,
    sync: Duration,
    rounds: u32,
    seconds: u64,
    runs: Vec<(Peer, Workload, Measured)>,
}

/// A column: its head, and its figure in a run.
type Column = (&'static str, fn(&Measured) -> Option<f64>);

const COLUMNS: [Column; 5] = [
    ("per second", |run| run.per_second),
    ("p50 ms", |run| Some(run.p50_ms)),
    ("p99 ms", |run| run.p99_ms),
    ("CPU-ms of all servers each", |run| run.cpu_ms),
    ("MiB of the largest server", |run| run.memory_mib),
];

impl Results {
    pub(crate) fn new(found: &[(Peer, String)], missing: &[String], sync: Duration, args: &Args) -> Self {
        Self {
            found: found.to_vec(),
            missing: missing.to_vec(),
            sync,
            rounds: args.rounds,
            seconds: args.seconds,
            runs: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, peer: Peer, workload: &Workload, measured: Measured) {
        self.runs.push((peer, *workload, measured));
    }

    fn figures(
        &self,
        peer: Peer,
        workload: &Workload,
        figure: fn(&Measured) -> Option<f64>,
    ) -> Option<Spread> {
        let of_both = self.runs.iter().filter(|(whose, what, _)| *whose == peer && what == workload);
        Spread::of(of_both.filter_map(|(_, _, measured)| figure(measured)).collect())
    }
}

/// Median, least and most.
#[derive(Clone, Copy, Debug)]
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(mut figures: Vec<f64>) -> Option<Self> {
        figures.sort_by(f64::total_cmp);
        let (least, most) = (*figures.first()?, *figures.last()?);
        let middle = figures.len() / 2;
        let median = if figures.len() % 2 == 1 {
            figures[middle]
        } else {
            f64::midpoint(figures[middle - 1], figures[middle])
        };
        Some(Self { median, least, most })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, least, most } = *self;
        write!(f, "{} ({}–{})", short(median), short(least), short(most))
    }
}

/// Three digits that mean something.
fn short(figure: f64) -> String {
    match figure {
        figure if figure >= 100.0 => format!("{figure:.0}"),
        figure if figure >= 10.0 => format!("{figure:.1}"),
        figure if figure >= 1.0 => format!("{figure:.2}"),
        figure => format!("{figure:.3}"),
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Measured on {} cores with the load on the same machine; the disk syncs an appended record in {:.2} ms (median). \
             Each figure is the median of {} runs of {} s after 2 s of warm-up, with the least and the most; in \
             brackets after it, how many times kunci's it is.\n",
            machine::cores(),
            self.sync.as_secs_f64() * 1_000.0,
            self.rounds,
            self.seconds
        )?;
        for workload in Workload::all() {
            if !self.runs.iter().any(|(_, what, _)| *what == workload) {
                continue;
            }
            writeln!(f, "**{}** (`{}`)\n", workload.title(), workload.name())?;
            let of_any =
                |figure| self.found.iter().any(|(peer, _)| self.figures(*peer, &workload, figure).is_some());
            let columns: Vec<Column> = COLUMNS.into_iter().filter(|(_, figure)| of_any(*figure)).collect();
            let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
            writeln!(f, "| | {} |\n| --- |{}", heads.join(" | "), " ---: |".repeat(heads.len()))?;
            for (peer, _) in &self.found {
                if !peer.can(&workload) {
                    continue;
                }
                write!(f, "| {} |", peer.name())?;
                for (_, figure) in &columns {
                    match (
                        self.figures(*peer, &workload, *figure),
                        self.figures(Peer::Kunci, &workload, *figure),
                    ) {
                        (Some(theirs), Some(ours)) if *peer != Peer::Kunci => {
                            write!(f, " {theirs} [{}×] |", short(theirs.median / ours.median))?;
                        }
                        (Some(figures), _) => write!(f, " {figures} |")?,
                        (None, _) => write!(f, " |")?,
                    }
                }
                writeln!(f)?;
            }
            writeln!(f)?;
        }
        writeln!(f, "What an answer means in the mode that was measured:\n")?;
        for (peer, version) in &self.found {
            writeln!(f, "- {} ({version}): {}.", peer.name(), peer.promise())?;
        }
        for missing in &self.missing {
            writeln!(f, "- Not measured, since it isn't installed: {missing}.")?;
        }
        Ok(())
    }
}
