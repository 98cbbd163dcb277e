//! Other programs.
//!
//! Owns: how they are started and what is said when they fail. Never: what they are for.

use crate::repo::Repo;
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// The cargo that started us, so that the toolchain is the same.
pub(crate) fn cargo_command(repo: &Repo) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.current_dir(repo.root()).stdin(Stdio::null());
    command
}

/// Runs cargo with its output shown.
pub(crate) fn cargo(repo: &Repo, arguments: &[&str]) -> anyhow::Result<()> {
    let mut command = cargo_command(repo);
    command.args(arguments);
    shown(command)
}

/// Runs a command with its output shown, and fails unless it succeeds.
pub(crate) fn shown(mut command: Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("start {}", words(&command)))?;
    if !status.success() {
        bail!("{} ended with {status}", words(&command));
    }
    Ok(())
}

/// Runs a command and gives what it wrote to stdout; its stderr is shown.
pub(crate) fn captured(mut command: Command) -> anyhow::Result<String> {
    let words = words(&command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("start {words}"))?;
    if !output.status.success() {
        bail!("{words} ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("read the output of {words}"))
}

/// Says which programs are missing before a test fails for want of one; each comes with the Debian package that has it.
pub(crate) fn find_programs(programs: &[(&str, &str)]) -> anyhow::Result<()> {
    let folders: Vec<_> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    let missing = |program: &str| !folders.iter().any(|folder| folder.join(program).is_file());
    let packages: Vec<_> =
        programs.iter().filter(|(program, _)| missing(program)).map(|(_, package)| *package).collect();
    if packages.is_empty() {
        return Ok(());
    }
    bail!("tests need programs that aren't installed: run `apt-get install {}`", packages.join(" "));
}

/// The command as a person would type it.
pub(crate) fn words(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    let words: Vec<_> = std::iter::once(name.to_string_lossy()).chain(arguments).collect();
    format!("`{}`", words.join(" "))
}
