//! The simulator, built as it has to be.
//!
//! Owns: the profile and the flag that a reproducible world needs. Never: an argument's meaning; the simulator has its own
//! `--help`.

use crate::repo::Repo;
use crate::run;
use std::ffi::OsString;

/// Lets the simulator seed tokio's own generator (see crates/sim/src/runtime.rs), and plant bugs (crates/sim/src/plants.rs).
const FLAG: &str = "--cfg tokio_unstable --cfg kunci_plants";

/// Builds the simulator and runs it with `arguments`.
pub(crate) fn run(repo: &Repo, arguments: &[String]) -> anyhow::Result<()> {
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
