//! The zombie test: with the fence, and without it.
//!
//! Owns: how `tests/zombie` is run, and how its report is shown. Never: what happens in it.

use crate::repo::Repo;
use crate::run;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the test runs against: a module of `tests/zombie` each.
pub(crate) const TARGETS: [&str; 4] = ["postgres", "redis", "file", "proxy"];

/// What the test reads; see `tests/zombie/report.rs`.
const WITHOUT_FENCE: &str = "KUNCI_ZOMBIE_WITHOUT_FENCE";
const REPORT: &str = "KUNCI_ZOMBIE_REPORT";

/// How a value that a late write destroyed is told.
const LOST: &str = "    LOST ";

/// Runs it with the fence, against one target or all: every late write has to be refused.
pub(crate) fn run(repo: &Repo, only: Option<&str>) -> anyhow::Result<()> {
    let reports = Reports::empty(repo)?;
    let mut command = test(repo, only);
    command.env(REPORT, &reports.folder);
    run::shown(command).context("a late write got through, or the test couldn't be run: see above")?;
    for target in chosen(only) {
        print!("{}", reports.of(target)?);
    }
    Ok(())
}

/// Runs it without the fence and shows what is lost. That is a failure, as it would be anywhere.
pub(crate) fn run_without_fence(repo: &Repo, only: Option<&str>) -> anyhow::Result<()> {
    let reports = Reports::empty(repo)?;
    let mut build = run::cargo_command(repo);
    build.args(["test", "--locked", "--package", "kunci-cli", "--test", "zombie", "--no-run"]);
    run::shown(build)?;
    let mut command = test(repo, only);
    command.env(REPORT, &reports.folder).env(WITHOUT_FENCE, "1");
    let output = command.output().with_context(|| format!("start {}", run::words(&command)))?;
    let mut lost = 0;
    for target in chosen(only) {
        let report = reports.of(target).inspect_err(|_| {
            eprint!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        })?;
        print!("{report}");
        lost += report.lines().filter(|line| line.starts_with(LOST)).count();
    }
    if lost == 0 {
        bail!(
            "without the fence nothing was lost, expected that late writes destroy data: this shows nothing"
        );
    }
    bail!("{lost} values of newer holders were destroyed by late writes: this is what the fence is for");
}

/// What CI checks: with the fence nothing gets through, and without it this very program shows the loss at every target
/// and ends with 1.
pub(crate) fn check(repo: &Repo) -> anyhow::Result<()> {
    run(repo, None)?;
    let program = std::env::current_exe().context("find this program")?;
    let mut command = Command::new(program);
    command.args(["zombie", "--without-fence"]).stdin(Stdio::null());
    let output = command.output().context("start this program again")?;
    let words = String::from_utf8_lossy(&output.stdout);
    print!("{words}");
    if output.status.code() != Some(1) {
        bail!("{} ended with {}, expected exit code 1", run::words(&command), output.status);
    }
    if let Some(target) = TARGETS.into_iter().find(|target| !shows_loss(&words, target)) {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        bail!("{} shows no loss at {target}", run::words(&command));
    }
    Ok(())
}

/// Whether a value was lost in a target's part of the report, which begins with its name and a colon.
fn shows_loss(report: &str, target: &str) -> bool {
    let part = report
        .lines()
        .skip_while(|line| !line.strip_prefix(target).is_some_and(|rest| rest.starts_with(':')));
    part.skip(1).take_while(|line| line.starts_with(' ')).any(|line| line.starts_with(LOST))
}

fn test(repo: &Repo, only: Option<&str>) -> Command {
    let mut command = run::cargo_command(repo);
    command.args(["test", "--locked", "--package", "kunci-cli", "--test", "zombie"]);
    if let Some(target) = only {
        command.args(["--", &format!("{target}::")]);
    }
    command
}

fn chosen(only: Option<&str>) -> Vec<&str> {
    only.map_or_else(|| TARGETS.to_vec(), |target| vec![target])
}

/// The folder with one file of words for each target.
struct Reports {
    folder: PathBuf,
}

impl Reports {
    fn empty(repo: &Repo) -> anyhow::Result<Self> {
        let folder = repo.target().join("zombie");
        let made = |folder: &Path| {
            if folder.exists() {
                std::fs::remove_dir_all(folder)?;
            }
            std::fs::create_dir_all(folder)
        };
        made(&folder).with_context(|| format!("empty the folder {}", folder.display()))?;
        Ok(Self { folder })
    }

    fn of(&self, target: &str) -> anyhow::Result<String> {
        std::fs::read_to_string(self.folder.join(target))
            .with_context(|| format!("there is no report of {target}: its test didn't come to an end"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_counts_for_the_target_that_it_is_told_of() {
        let report = "redis: 1 late write\n  redis/round-1\n    LOST \"B's work\"\nfile: 1 late write\n  file/round-1\n";

        assert!(shows_loss(report, "redis"));
        assert!(!shows_loss(report, "file"));
        assert!(!shows_loss(report, "proxy"));
    }
}
