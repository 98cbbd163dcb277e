//! The steps of CI.
//!
//! Owns: their order, names and timing. Never: how a step does its work.

use crate::repo::Repo;
use crate::{deny, docs, examples, fuzz, growth, layers, run, sim, test, tidy, ui, zombie};
use anyhow::Context;
use std::time::{Duration, Instant};

/// One thing CI checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Fmt,
    Tidy,
    Layers,
    Clippy,
    Docs,
    Test,
    Sim,
    Zombie,
    Fuzz,
    Growth,
    Examples,
    Ui,
    Deny,
}

impl Step {
    /// CI's order: what fails fast and often comes first, what costs minutes comes last.
    pub(crate) const ALL: [Step; 13] = [
        Step::Fmt,
        Step::Tidy,
        Step::Layers,
        Step::Clippy,
        Step::Docs,
        Step::Test,
        Step::Sim,
        Step::Zombie,
        Step::Fuzz,
        Step::Growth,
        Step::Examples,
        Step::Ui,
        Step::Deny,
    ];

    /// The command that runs only this step.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Step::Fmt => "cargo xtask fmt --check",
            Step::Tidy => "cargo xtask tidy",
            Step::Layers => "cargo xtask layers",
            Step::Clippy => "cargo xtask clippy",
            Step::Docs => "cargo xtask docs",
            Step::Test => "cargo xtask test",
            Step::Sim => "cargo xtask sim",
            Step::Zombie => "cargo xtask zombie",
            Step::Fuzz => "cargo xtask fuzz",
            Step::Growth => "cargo xtask growth",
            Step::Examples => "cargo xtask examples",
            Step::Ui => "cargo xtask ui",
            Step::Deny => "cargo xtask deny",
        }
    }

    /// Runs it, and fails with what a person should do about it.
    pub(crate) fn run(self, repo: &Repo) -> anyhow::Result<()> {
        match self {
            Step::Fmt => run::cargo(repo, &["fmt", "--all", "--", "--check"])
                .context("some files aren't formatted: run `cargo xtask fmt`"),
            Step::Tidy => tidy::run(repo),
            Step::Layers => layers::run(repo),
            Step::Clippy => run::cargo(
                repo,
                // With the feature that no other step builds.
                &[
                    "clippy",
                    "--workspace",
                    "--all-targets",
                    "--features",
                    "kunci-cli/otlp",
                    "--locked",
                    "--",
                    "-D",
                    "warnings",
                ],
            ),
            Step::Docs => docs::run(repo),
            Step::Test => test::run(repo, &[]),
            Step::Sim => sim::ci(repo),
            Step::Zombie => zombie::check(repo),
            Step::Fuzz => fuzz::run(repo, None),
            Step::Growth => growth::run(repo),
            Step::Examples => examples::run(repo),
            Step::Ui => ui::run(repo),
            Step::Deny => deny::run(repo),
        }
    }
}

/// Runs every step in order and stops at the first that fails.
pub(crate) fn run_all(repo: &Repo) -> anyhow::Result<()> {
    let mut done = Vec::new();
    for step in Step::ALL {
        println!("==> {}", step.command());
        let (result, took) = timed(|| step.run(repo));
        result.with_context(|| {
            let command = step.command();
            format!("step failed after {:.1} s; to run only it again: {command}", took.as_secs_f64())
        })?;
        println!("==> ok in {:.1} s", took.as_secs_f64());
        done.push((step, took));
    }
    println!("==> all {} steps passed", done.len());
    for (step, took) in done {
        println!("{:>8.1} s  {}", took.as_secs_f64(), step.command());
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a step took is for people; no product code runs here"
)]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let value = work();
    (value, started.elapsed())
}
