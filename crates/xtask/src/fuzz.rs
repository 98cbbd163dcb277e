//! The fuzz targets in `fuzz/`, run for a short while.
//!
//! Owns: how they are built on the stable compiler, and where what they find goes. Never: what they check.

use crate::repo::Repo;
use crate::run;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How long each target runs in CI. The corpus is played first, whatever that takes.
const SECONDS: u32 = 10;

/// What `cargo fuzz` passes to a nightly compiler, less the address sanitizer: nothing here is unsafe.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
                     --cfg fuzzing";

/// Builds the targets, then runs each for `seconds` over its corpus.
pub(crate) fn run(repo: &Repo, seconds: Option<u32>) -> anyhow::Result<()> {
    let (folder, target) = (repo.root().join("fuzz"), repo.target().join("fuzz"));
    let host = host(repo)?;
    let mut command = run::cargo_command(repo);
    // With `--target` the flags leave build scripts alone, which have no fuzzer to count for.
    command.args(["build", "--release", "--locked", "--target", &host]);
    command.current_dir(&folder).env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", &target);
    run::shown(command)?;
    for name in targets(&folder)? {
        println!("--> {name}");
        let program = target.join(&host).join("release").join(&name);
        fuzz(&folder, &target, &Target { name, program }, seconds.unwrap_or(SECONDS))?;
    }
    Ok(())
}

/// One program that tries inputs.
struct Target {
    name: String,
    program: PathBuf,
}

fn fuzz(folder: &Path, target: &Path, fuzzed: &Target, seconds: u32) -> anyhow::Result<()> {
    let [found, faults] = ["found", "faults"].map(|kind| target.join(kind).join(&fuzzed.name));
    for folder in [&found, &faults] {
        std::fs::create_dir_all(folder).with_context(|| format!("make folder {}", folder.display()))?;
    }
    let mut command = Command::new(&fuzzed.program);
    command.arg(format!("-max_total_time={seconds}"));
    // An input that takes seconds is a fault too, and so is one that takes memory.
    command.args(["-max_len=5000", "-timeout=5", "-rss_limit_mb=1024", "-print_final_stats=1"]);
    command.arg(format!("-artifact_prefix={}/", faults.display()));
    // What is new goes into the first folder; the committed corpus is only read.
    command.arg(&found).arg(folder.join("corpus").join(&fuzzed.name));
    let words = run::words(&command);
    let output = command.output().with_context(|| format!("start {words}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        told.lines().filter(|line| line.starts_with("stat::")).for_each(|line| println!("{line}"));
        return Ok(());
    }
    println!("{told}");
    bail!(
        "{words} ended with {}; the input is in {}; to play it again: {} FILE",
        output.status,
        faults.display(),
        fuzzed.program.display()
    )
}

/// The targets by name, sorted.
fn targets(folder: &Path) -> anyhow::Result<Vec<String>> {
    let folder = folder.join("fuzz_targets");
    let files = std::fs::read_dir(&folder).with_context(|| format!("read folder {}", folder.display()))?;
    let mut names = Vec::new();
    for file in files {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    if names.is_empty() {
        bail!("no target in {}: expected at least one", folder.display());
    }
    names.sort();
    Ok(names)
}

/// The system that this compiler builds for, as its target triple.
fn host(repo: &Repo) -> anyhow::Result<String> {
    let mut command = Command::new("rustc");
    command.args(["--print", "host-tuple"]).current_dir(repo.root());
    Ok(run::captured(command)?.trim().to_owned())
}
