//! Running the binary against the scripted server.

pub(crate) use crate::processes::{Ran, finish, is_alive, pids, run, signal, until};

use crate::fake::Fake;
use std::process::{Command, Stdio};

/// The binary with these words, split at spaces, set on the fake server.
pub(crate) fn kunci(fake: &Fake, words: &str) -> Command {
    // Under nohup, or in a script's background, signals are ignored from birth; a test's aren't.
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_kunci")]);
    command.env("KUNCI_URL", fake.url()).env_remove("KUNCI_ENDPOINTS").args(words.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// `kunci exec` with these options on the resource `r`, running a shell script.
pub(crate) fn exec(fake: &Fake, options: &str, script: &str) -> Command {
    let mut command = kunci(fake, &format!("exec {options} r -- sh -c"));
    command.arg(script);
    command
}
