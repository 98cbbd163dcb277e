//! The front door for people and CI: `cargo xtask --help`.
//!
//! Owns: what each step is called and in which order CI takes them. Never: a step that only CI can run.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for people: its output is its product"
)]

mod bench_peers;
mod deny;
mod docs;
mod examples;
mod fuzz;
mod growth;
mod layers;
mod links;
mod repo;
mod run;
mod sim;
mod step;
mod test;
mod tidy;
mod ui;
mod zombie;

use crate::repo::Repo;
use crate::step::Step;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Checks, tests and tools of this repository, each behind one command.
///
/// CI runs exactly `cargo xtask ci`, which takes the other commands in turn, cheap ones first, and stops at the
/// first that fails. So run `cargo xtask ci` before you push, and while you work only the step you care about.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run every step in CI's order; stop at the first that fails and say how to run it alone.
    Ci,
    /// Format the code; with --check only say what isn't formatted.
    Fmt {
        /// Change nothing: fail when a file isn't formatted.
        #[arg(long)]
        check: bool,
    },
    /// Check what neither rustfmt nor clippy knows: our words, file sizes, headers, purity of the core.
    ///
    /// Each finding is one line, `file:line: what was found and what to do`. Files over 400 lines (without their
    /// tests) are listed, over 600 they fail. Functions over 70 lines are clippy's: see clippy.toml.
    Tidy,
    /// Check which crate names which, and that kunci-core depends on nothing but its allow-list.
    Layers,
    /// Run clippy over every target of every crate; any warning fails.
    Clippy,
    /// Build the API documentation with warnings denied, and follow every relative link in every Markdown file.
    Docs,
    /// Run all tests; what follows `--` goes to `cargo test`.
    ///
    /// For example `cargo xtask test -- -p kunci-core`, or `cargo xtask test -- --test server a_waiter`.
    Test {
        /// Arguments for `cargo test`, instead of `--workspace`.
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Run the fuzz targets in fuzz/ for a while, after their corpus; what they find new is kept in target/fuzz/found.
    ///
    /// An input that fails is kept in target/fuzz/faults, and the message says how to play it again.
    Fuzz {
        /// For how long to run each target; CI gives each a few seconds.
        #[arg(long, value_name = "SECONDS")]
        seconds: Option<u32>,
    },
    /// Run the simulator: `cargo xtask sim --help` is its own. Without arguments, everything that CI runs of it.
    #[command(disable_help_flag = true)]
    Sim {
        /// What the simulator takes: a seed, for example.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run the simulator on seeds that nobody ran before, for so many simulated hours.
    Soak {
        /// How many, all worlds together.
        hours: f64,
    },
    /// Stop real holders past their lease, let others take over, wake the first: their late writes must be refused.
    ///
    /// Twenty rounds each against PostgreSQL, Redis, a file and the HTTP proxy, with real servers and a cluster of three.
    Zombie {
        /// Write without the fence: shows which values are lost, and ends with exit code 1.
        #[arg(long)]
        without_fence: bool,
        /// Against this target alone.
        #[arg(long, value_name = "TARGET", value_parser = zombie::TARGETS)]
        only: Option<String>,
    },
    /// Count what each command costs on a table of 1,000 resources and on one of 1,000,000; more than twice fails.
    ///
    /// Instructions are counted under valgrind, so a busy machine changes nothing. Takes about two minutes.
    Growth,
    /// Measure kunci beside etcd, ZooKeeper and Redis on this machine, and write one table. Takes a quarter of an hour.
    ///
    /// Let nothing else run. `cargo xtask bench-peers --help` is its own.
    #[command(disable_help_flag = true)]
    BenchPeers {
        /// What it takes: `--rounds 5 --out docs/peers.md`, for example.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run every script in examples/ against a freshly built `kunci`.
    Examples,
    /// Build the dashboard anew, compare it with ui/dist, and test it in Chromium against clusters of three.
    ///
    /// Screenshots are kept in target/ui-screenshots. Nothing else needs Node: what the node embeds is committed.
    Ui {
        /// Write what was built to ui/dist, and the screenshots to docs/screens.
        #[arg(long)]
        write: bool,
    },
    /// Check licences, banned crates, duplicate versions and sources of all dependencies with cargo-deny.
    ///
    /// The pinned cargo-deny is built into target/tools when it isn't there; that takes about a minute, once.
    Deny,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match perform(&cli.task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            error.chain().skip(1).for_each(|cause| eprintln!("  {cause}"));
            ExitCode::FAILURE
        }
    }
}

fn perform(task: &Task) -> anyhow::Result<()> {
    let repo = Repo::find()?;
    match task {
        Task::Ci => step::run_all(&repo),
        Task::Fmt { check: false } => run::cargo(&repo, &["fmt", "--all"]),
        Task::Fmt { check: true } => Step::Fmt.run(&repo),
        Task::Tidy => Step::Tidy.run(&repo),
        Task::Layers => Step::Layers.run(&repo),
        Task::Clippy => Step::Clippy.run(&repo),
        Task::Docs => Step::Docs.run(&repo),
        Task::Test { arguments } => test::run(&repo, arguments),
        Task::Fuzz { seconds } => fuzz::run(&repo, *seconds),
        Task::Sim { arguments } => sim::run(&repo, arguments),
        Task::Soak { hours } => sim::run(&repo, &["--hours".to_owned(), hours.to_string()]),
        Task::Zombie { without_fence: false, only } => zombie::run(&repo, only.as_deref()),
        Task::Zombie { without_fence: true, only } => zombie::run_without_fence(&repo, only.as_deref()),
        Task::BenchPeers { arguments } => bench_peers::run(&repo, arguments),
        Task::Growth => Step::Growth.run(&repo),
        Task::Examples => Step::Examples.run(&repo),
        Task::Ui { write: false } => Step::Ui.run(&repo),
        Task::Ui { write: true } => ui::write(&repo),
        Task::Deny => Step::Deny.run(&repo),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_step_of_ci_can_be_run_alone_by_the_command_it_names() {
        for step in Step::ALL {
            let words = step.command().split(' ').skip(1);
            assert!(Cli::try_parse_from(words).is_ok(), "{} isn't a command", step.command());
        }
    }

    #[test]
    fn arguments_of_test_go_to_cargo_whole() {
        let cli = Cli::parse_from(["xtask", "test", "--", "-p", "kunci-core", "--", "--nocapture"]);
        let Task::Test { arguments } = cli.task else { panic!("expected the task `test`") };
        assert_eq!(arguments, ["-p", "kunci-core", "--", "--nocapture"]);
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
