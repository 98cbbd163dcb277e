//! All tests, counted.
//!
//! Owns: how `cargo test` is called and its closing line. Never: a test.

use crate::repo::Repo;
use crate::run;
use anyhow::{Context, bail};
use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Programs that tests start, and the Debian package that has each; by its path, what Debian keeps off `PATH`.
const PROGRAMS: [(&str, &str); 11] = [
    ("faketime", "faketime"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
    ("mount", "mount"),
    ("nc", "netcat-openbsd"),
    ("nsenter", "util-linux"),
    ("openssl", "openssl"),
    ("/usr/lib/postgresql/15/bin/postgres", "postgresql-15"),
    ("promtool", "prometheus"),
    ("redis-server", "redis-server"),
    ("strace", "strace"),
];

/// What the test binaries said at their end, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Tally {
    /// Adds one line of output, if it is the closing line of a test binary.
    fn add(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let counts = counts.split_once(". ").map_or("", |(_, counts)| counts);
        for count in counts.split("; ") {
            let Some((number, what)) = count.split_once(' ') else { continue };
            let number = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tests: {} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Runs the whole suite, or what `arguments` choose, and closes with one line that adds it up.
pub(crate) fn run(repo: &Repo, arguments: &[String]) -> anyhow::Result<()> {
    run::find_programs(&PROGRAMS)?;
    let mut command = run::cargo_command(repo);
    command.args(["test", "--locked"]).stdout(Stdio::piped());
    if arguments.is_empty() {
        command.arg("--workspace");
    } else {
        command.args(arguments);
    }

    let mut child = command.spawn().with_context(|| format!("start {}", run::words(&command)))?;
    let stdout = child.stdout.take().context("read the output of cargo test: it has none")?;
    let mut tally = Tally::default();
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("read the output of cargo test")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        tally.add(&line);
    }
    let status = child.wait().context("wait for cargo test")?;

    println!("{tally}");
    if !status.success() {
        bail!("{} ended with {status}", run::words(&command));
    }
    if tally.passed == 0 {
        bail!("{} ran no test: expected at least one", run::words(&command));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_all_binaries_are_added_up() {
        let output = "
running 2 tests
test a_waiter_is_served ... ok
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
test result: FAILED. 5 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 1.20s
";
        let mut tally = Tally::default();
        output.lines().for_each(|line| tally.add(line));

        assert_eq!(tally.to_string(), "tests: 7 passed, 1 failed, 1 skipped");
    }
}
