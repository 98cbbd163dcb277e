//! The scripts in `examples/`, run as a reader would.
//!
//! Owns: which are run, and that `kunci` and the programs next to them are on their path. Never: what they show.

use crate::repo::Repo;
use crate::run;
use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A script that hangs is stopped after this long; the longest takes about a minute on two cores.
const SECONDS_MAX: &str = "600";

/// Builds `kunci` and `examples/*.rs`, then runs every `examples/*.sh` with them first on the `PATH`.
pub(crate) fn run(repo: &Repo) -> anyhow::Result<()> {
    run::cargo(repo, &["build", "--locked", "--package", "kunci-cli"])?;
    run::cargo(repo, &["build", "--locked", "--package", "kunci-client", "--examples"])?;
    let scripts = scripts(repo)?;
    if scripts.is_empty() {
        bail!("no script in examples/: expected at least one `examples/*.sh`");
    }
    let own = std::env::var_os("PATH").unwrap_or_default();
    let built = repo.target().join("debug");
    let programs = built.join("examples");
    let folders = [built, programs].into_iter().chain(std::env::split_paths(&own));
    let path = std::env::join_paths(folders).context("put what was built on the PATH")?;

    for script in scripts {
        println!("--> {}", script.display());
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", SECONDS_MAX, "bash"]).arg(script);
        command.current_dir(repo.root()).env("PATH", &path).stdin(Stdio::null());
        run::shown(command)?;
    }
    Ok(())
}

/// Their paths from the root, sorted.
fn scripts(repo: &Repo) -> anyhow::Result<Vec<PathBuf>> {
    let files = repo.text_files()?.into_iter().map(|file| file.path);
    let is_example = |path: &String| {
        path.strip_prefix("examples/").is_some_and(|name| name.ends_with(".sh") && !name.contains('/'))
    };
    Ok(files.filter(is_example).map(PathBuf::from).collect())
}
