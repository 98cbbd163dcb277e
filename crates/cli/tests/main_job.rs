//! The main job: real processes, a real file, and a node that is killed again and again.
//!
//! Owns: that the script's verdict is right in both directions. Never: the job; examples/twenty-writers.sh is it.

#![expect(clippy::unwrap_used, reason = "a test that can't go on should fail on the spot")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Seconds that the script may take; it needs about ten on two cores.
const SECONDS_MAX: &str = "60";

fn twenty_writers(arguments: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/twenty-writers.sh");
    let own = std::env::var_os("PATH").unwrap_or_default();
    let built = PathBuf::from(env!("CARGO_BIN_EXE_kunci"));
    let path = std::iter::once(built.parent().unwrap().to_owned()).chain(std::env::split_paths(&own));
    Command::new("timeout")
        .args(["--kill-after=5", SECONDS_MAX, "bash"])
        .arg(script)
        .args(arguments)
        .env("PATH", std::env::join_paths(path).unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Defends S1, S2, S4 and L2 on one node, case C103.
#[test]
fn twenty_writers_never_corrupt_their_counter_though_the_node_is_killed() {
    let output = twenty_writers(&[]);

    let words = words(&output);
    assert!(output.status.success(), "{}\n{words}", output.status);
    assert!(words.contains("verdict: exact: 200 appends"), "{words}");
    assert!(words.contains("the node was killed 5 times"), "{words}");
}

/// The same job without the lock is corrupt, so the test above can fail.
#[test]
fn without_the_lock_the_same_writers_corrupt_it() {
    let output = twenty_writers(&["--without-lock"]);

    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    assert!(words(&output).contains("verdict: corrupt"), "{}", words(&output));
}
