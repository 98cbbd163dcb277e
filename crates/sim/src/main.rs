//! Runs seeds: `cargo xtask sim --help`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for people: its output is its product"
)]

mod batch;
mod elsewhere;
mod least;
mod meta;
mod planting;

use batch::Batch;
use clap::Parser;
use kunci_sim::plan::Plan;
use kunci_sim::report::Report;
use kunci_sim::trace::Lines;
use kunci_sim::{randomness, runtime, world};
use least::Least;
use std::ops::Range;
use std::process::ExitCode;

/// Runs the product's own replica, server and clients in a simulated world that follows from a seed.
#[derive(Parser)]
#[command(bin_name = "cargo xtask sim")]
struct Cli {
    /// The seed of one world.
    #[arg(required_unless_present_any = ["seeds", "hours", "meta", "plant", "plants", "check_plants"])]
    seed: Option<u64>,
    /// Show what happens in it: who, when, what. The lines go to stderr.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Run many worlds, from the first seed to the last, that one not included.
    #[arg(long, value_name = "A..B", value_parser = range, conflicts_with = "seed")]
    seeds: Option<Range<u64>>,
    /// Run worlds of new seeds until so many hours are simulated.
    #[arg(long, conflicts_with_all = ["seed", "seeds"])]
    hours: Option<f64>,
    /// Check first of all that a seed is the same world each time: twice in this process, in a fresh one, and as on
    /// another machine.
    #[arg(long, value_name = "A..B", value_parser = range, conflicts_with_all = ["seed", "seeds", "hours"])]
    meta: Option<Range<u64>>,
    /// Plant a bug, and run worlds until it is found: always a failure, which names the property that it breaks.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["seed", "seeds", "hours", "meta"])]
    plant: Option<String>,
    /// Show all bugs that can be planted.
    #[arg(long)]
    plants: bool,
    /// Plant each bug, and fail unless each is found.
    #[arg(long)]
    check_plants: bool,
    /// How many worlds run at the same time.
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    threads: usize,
    #[command(flatten)]
    least: Least,
    /// Run the seed as on another machine: one core, another host name. `--meta` compares.
    #[arg(long, requires = "seed", hide = true)]
    elsewhere: bool,
}

/// One bug often breaks a world in many places.
const BROKEN_SHOWN_MAX: usize = 8;

fn range(text: &str) -> Result<Range<u64>, String> {
    let bad = || format!("expected A..B, two seeds, the first the smaller one; found {text}");
    let (from, to) = text.split_once("..").ok_or_else(bad)?;
    let (from, to) = (from.parse().map_err(|_| bad())?, to.parse().map_err(|_| bad())?);
    if from < to { Ok(from..to) } else { Err(bad()) }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if cli.elsewhere {
        elsewhere::go();
    }
    if let Err(why) = randomness::check() {
        eprintln!("error: {why}");
        return ExitCode::FAILURE;
    }
    if !runtime::IS_REPRODUCIBLE {
        eprintln!(
            "warning: built without --cfg tokio_unstable, a seed isn't the same world each time: use cargo xtask sim"
        );
    }
    let is_well = match &cli {
        Cli { seed: Some(seed), trace, .. } => one(*seed, *trace),
        Cli { meta: Some(seeds), .. } => meta::check(seeds.clone()),
        Cli { seeds: Some(seeds), .. } => {
            Batch::new(cli.threads).run(seeds.clone(), |_| false).is_well(&cli.least)
        }
        Cli { plant: Some(name), .. } => planting::run(name),
        Cli { plants: true, .. } => planting::list(),
        Cli { check_plants: true, .. } => planting::check(),
        Cli { hours: Some(hours), .. } => soak(*hours, &cli),
        _ => true,
    };
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one seed and shows all of it.
fn one(seed: u64, trace: bool) -> bool {
    let lines = if trace { Lines::Shown } else { Lines::Dropped };
    match world::run(&Plan::drawn(seed), lines) {
        Ok(report) => {
            println!("{}", report.counts);
            show_broken(&report);
            println!("trace hash       {:016x}", report.hash);
            report.broken.is_empty()
        }
        Err(why) => {
            println!("seed {seed}: the simulator failed: {why}");
            false
        }
    }
}

/// Runs seeds that nobody ran before.
fn soak(hours: f64, cli: &Cli) -> bool {
    let mut bits = [0; 8];
    if let Err(error) = getrandom::fill(&mut bits) {
        eprintln!("error: draw a seed to begin with: {error}");
        return false;
    }
    // Short enough to be typed.
    let from = u64::from_le_bytes(bits) % 1_000_000_000_000;
    println!("seeds from {from} on, for {hours} simulated hours");
    let batch = Batch::new(cli.threads);
    batch.run(from..u64::MAX, |counts| counts.time.as_secs_f64() >= hours * 3_600.0).is_well(&cli.least)
}

fn show_broken(report: &Report) {
    for broken in report.broken.iter().take(BROKEN_SHOWN_MAX) {
        println!("seed {}: {} is broken: {}", report.seed, broken.property, broken.what);
    }
    if let Some(more @ 1..) = report.broken.len().checked_sub(BROKEN_SHOWN_MAX) {
        println!("seed {}: and {more} more", report.seed);
    }
    if !report.broken.is_empty() {
        println!("seed {}: see it again with: cargo xtask sim {} --trace", report.seed, report.seed);
    }
}
