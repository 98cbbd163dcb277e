//! Dependencies against `deny.toml`.
//!
//! Owns: which cargo-deny is used and where it is kept. Never: what is allowed; that is `deny.toml`.

use crate::repo::Repo;
use crate::run;
use std::path::Path;
use std::process::Command;

/// Pinned, because a new version may find more than an old one.
const VERSION: &str = "0.20.2";

/// Checks bans, licences and sources; builds the pinned cargo-deny first when it isn't there.
///
/// `advisories` is left out: it fetches a database over the network, which CI doesn't have.
pub(crate) fn run(repo: &Repo) -> anyhow::Result<()> {
    let tools = repo.target().join("tools");
    let program = tools.join("bin").join("cargo-deny");
    if !is_pinned(&program) {
        install(repo, &tools)?;
    }
    let mut command = Command::new(program);
    command.current_dir(repo.root()).args(["--locked", "check"]);
    // An exception that is no longer needed is a hole.
    command.args(["-D", "unnecessary-skip", "-D", "unmatched-skip"]);
    command.args(["bans", "licenses", "sources"]);
    run::shown(command)
}

fn is_pinned(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == format!("cargo-deny {VERSION}").as_bytes())
}

fn install(repo: &Repo, tools: &Path) -> anyhow::Result<()> {
    println!("cargo-deny {VERSION} isn't in {}: building it, about a minute on two cores", tools.display());
    let mut command = run::cargo_command(repo);
    // Unoptimised and without debug information: built in a fraction of the time, and it runs for a second.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    command.args(["install", "--locked", "--debug", "--quiet", "--version", VERSION, "--root"]).arg(tools);
    command.arg("cargo-deny");
    run::shown(command)
}
