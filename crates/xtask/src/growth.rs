//! What a command costs on a large table, compared with a small one.
//!
//! Owns: counting instructions under valgrind, so that a busy machine changes nothing, and how much more a large table may
//! cost. Never: a time.

use crate::repo::Repo;
use crate::run;
use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Resources in the small and in the large table.
const SIZES: [u64; 2] = [1_000, 1_000_000];
/// What a command on the large one may cost, in hundredths of the cost on the small one.
const PERCENT_MAX: u64 = 200;

/// Instructions of each kind of command.
type Costs = BTreeMap<String, u64>;

/// Counts both, prints a table, and fails when a kind grows too much.
pub(crate) fn run(repo: &Repo) -> anyhow::Result<()> {
    let program = build(repo)?;
    let [small, large] = SIZES.map(|resources| count(repo, &program, resources));
    let (small, large) = (small?, large?);
    println!(
        "{:<22} {:>14} {:>14} {:>7}",
        "instructions",
        format!("at {}", SIZES[0]),
        format!("at {}", SIZES[1]),
        "growth"
    );
    let mut too_much = Vec::new();
    for (kind, small) in &small {
        let large = *large.get(kind).with_context(|| format!("{kind} was not counted on the large table"))?;
        let percent = large * 100 / (*small).max(1);
        println!("{:<22} {small:>14} {large:>14} {percent:>6}%", kind.replace('_', " "));
        if percent > PERCENT_MAX {
            too_much.push(format!("{kind} {percent}%"));
        }
    }
    if !too_much.is_empty() {
        bail!("more than {PERCENT_MAX}% of what it costs on a small table: {}", too_much.join(", "));
    }
    Ok(())
}

/// Builds the work, and gives its program.
fn build(repo: &Repo) -> anyhow::Result<PathBuf> {
    let mut command = run::cargo_command(repo);
    command.args(["bench", "--no-run", "--locked", "--package", "kunci-core", "--bench", "growth"]);
    command.arg("--message-format=json-render-diagnostics");
    let messages = run::captured(command)?;
    let program =
        messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|message| {
            let is_it = message["target"]["name"] == "growth";
            is_it.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
        });
    program.context("cargo named no program for the bench `growth`")
}

/// Runs the work on a table of so many resources.
fn count(repo: &Repo, program: &Path, resources: u64) -> anyhow::Result<Costs> {
    println!("counting on {resources} resources");
    let folder = repo.target().join("growth");
    std::fs::create_dir_all(&folder).with_context(|| format!("make folder {}", folder.display()))?;
    let profile = folder.join(format!("callgrind-{resources}"));
    let mut command = Command::new("valgrind");
    // Filling the table isn't counted, and takes a minute uncounted.
    command.args(["--quiet", "--tool=callgrind", "--instr-atstart=no"]);
    command.arg(format!("--callgrind-out-file={}", profile.display()));
    command.arg(program).arg(resources.to_string());
    let mut child = command
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("start `valgrind`: it is in the Debian package of that name")?;
    let worked = work(&mut child);
    if worked.is_err() {
        drop(child.kill());
    }
    let status = child.wait().context("wait for valgrind")?;
    worked?;
    if !status.success() {
        bail!("{} ended with {status}", run::words(&command));
    }
    read(&profile)
}

/// Waits until the table is full, and lets the work begin, counted.
fn work(child: &mut Child) -> anyhow::Result<()> {
    let stdout = child.stdout.take().context("valgrind has no stdout")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).context("read what the work says")?;
    if !line.starts_with("ready") {
        bail!("the work said {line:?}: expected `ready`");
    }
    let mut on = Command::new("callgrind_control");
    on.args(["--instr=on", &child.id().to_string()]);
    run::captured(on)?;
    let mut stdin = child.stdin.take().context("valgrind has no stdin")?;
    stdin.write_all(b"\n").context("let the work begin")
}

/// The cost of each `counted_…` function with all that it calls.
fn read(profile: &Path) -> anyhow::Result<Costs> {
    let mut command = Command::new("callgrind_annotate");
    command.args(["--inclusive=yes", "--threshold=100", "--auto=no"]).arg(profile);
    command.stderr(Stdio::null());
    let output = command.output().with_context(|| format!("start {}", run::words(&command)))?;
    let costs = costs_of(&String::from_utf8_lossy(&output.stdout));
    if costs.is_empty() {
        bail!("no counted function in {}", profile.display());
    }
    Ok(costs)
}

/// Reads lines such as `13,601,767 (21.17%)  …/growth.rs:growth::counted_acquire [/…]`. A function stands there once for
/// each file that its code comes from; the largest is the whole.
fn costs_of(annotated: &str) -> Costs {
    let mut costs = Costs::new();
    for line in annotated.lines() {
        let Some((before, kind)) = line.split_once("growth::counted_") else { continue };
        let kind: String = kind.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect();
        let count: String =
            before.split('(').next().unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
        let Ok(count) = count.parse::<u64>() else { continue };
        let cost = costs.entry(kind).or_default();
        *cost = (*cost).max(count);
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_count_of_a_function_is_its_cost() {
        let annotated = "\
13,601,767 (21.17%)  crates/core/benches/growth.rs:growth::counted_acquire [/x/growth-1]
    10,004 ( 0.02%)  library/core/src/hint.rs:growth::counted_acquire [/x/growth-1]
     5,000 ( 0.02%)  crates/core/benches/growth.rs:growth::counted_try_of_a_held_one'2 [/x/growth-1]
 7,000,000 (10.00%)  crates/core/src/table.rs:kunci_core::table::LockTable::apply [/x/growth-1]
";

        let costs = costs_of(annotated);

        let expected = [("acquire".to_owned(), 13_601_767), ("try_of_a_held_one".to_owned(), 5_000)];
        assert_eq!(costs, Costs::from(expected));
    }
}
