//! Running the binary, and looking at processes from outside.

use crate::fake::Fake;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tokio::time::Instant;

/// Whatever a test waits for has happened by then, or the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

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

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs to the end.
pub(crate) fn run(command: &mut Command) -> Ran {
    finish(command.spawn().unwrap())
}

/// Waits for the end; a run that has none is killed and fails the test.
pub(crate) fn finish(child: Child) -> Ran {
    let (began_at, id) = (Instant::now(), child.id());
    // Read while it runs: it may say more than a pipe holds.
    let ending = std::thread::spawn(move || child.wait_with_output().unwrap());
    while !ending.is_finished() {
        if began_at.elapsed() > PATIENCE {
            signal(id, "KILL");
            panic!("no end after {PATIENCE:?}: {:?}", ending.join());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let Output { status, stdout, stderr } = ending.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began_at = Instant::now();
    while !is_so() {
        assert!(began_at.elapsed() < PATIENCE, "not so after {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sends a signal to one process.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status().unwrap();
    assert!(status.success(), "kill -{name} {pid}");
}

/// The process ids in a file, once there are `count` of them.
pub(crate) fn pids(file: &Path, count: usize) -> Vec<u32> {
    let read = || -> Vec<u32> {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        // The last line may not be whole yet.
        let whole = text.rsplit_once('\n').map(|(whole, _)| whole.to_owned()).unwrap_or_default();
        whole.lines().filter_map(|line| line.parse().ok()).collect()
    };
    until("the process ids are written", || read().len() >= count);
    read()
}

/// Whether a process runs; one that only waits to be collected doesn't.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}
