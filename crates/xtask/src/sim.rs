//! The simulator, built as it has to be.
//!
//! Owns: the profile and the flag that a reproducible world needs. Never: an argument's meaning; the simulator has its own
//! `--help`.

use crate::repo::Repo;
use crate::run;
use std::ffi::OsString;

/// Lets the simulator seed tokio's own generator (see crates/sim/src/runtime.rs), and plant bugs (crates/sim/src/plants.rs).
const FLAG: &str = "--cfg tokio_unstable --cfg kunci_plants";

/// What CI runs, in this order: first whether the simulator can be believed, then whether it sees, then what there is to be
/// seen. The last fails also when a change makes it smaller than it has to be.
const CI: [&[&str]; 3] = [&["--meta", "0..4"], &["--check-plants"], &BUDGET];

/// The worlds of every run of CI, and what they have to come to.
const BUDGET: [&str; 12] = [
    "--seeds",
    "0..2500",
    "--hours-least",
    "30",
    "--fives-least",
    "50",
    "--operations-least",
    "10",
    "--faults-a-seed-least",
    "40",
    "--faults-least",
    "500",
];

/// Builds the simulator and does with it what CI does.
pub(crate) fn ci(repo: &Repo) -> anyhow::Result<()> {
    for arguments in CI {
        println!("--> cargo xtask sim {}", arguments.join(" "));
        run(repo, &arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Builds the simulator and runs it with `arguments`; with none, what CI does.
pub(crate) fn run(repo: &Repo, arguments: &[String]) -> anyhow::Result<()> {
    if arguments.is_empty() {
        return ci(repo);
    }
    let mut command = run::cargo_command(repo);
    command.args(["run", "--quiet", "--locked", "--profile", "sim", "--package", "kunci-sim", "--"]);
    command.args(arguments);
    let mut flags = std::env::var_os("RUSTFLAGS").unwrap_or_default();
    if !flags.is_empty() {
        flags.push(OsString::from(" "));
    }
    flags.push(FLAG);
    command.env("RUSTFLAGS", flags);
    run::shown(command)
}
