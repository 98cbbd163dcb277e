//! A database, by way of psql.
//!
//! Owns: how psql is called, and what its end means. Never: an SQL statement. psql and not a client of our own, so that
//! everything works that works for psql: passwords, services, TLS, Kerberos; and so that this binary stays small.

use crate::exit::{Exit, Failure};
use serde_json::Value;
use std::io::{self, Write as _};
use std::process::{Command, Output, Stdio};

/// A server that doesn't answer is given up after this many seconds, unless the environment says otherwise.
const CONNECT_TIMEOUT_S: &str = "10";

/// psql's exit code when there is no connection, or no longer.
const NO_CONNECTION: i32 = 2;

/// Where scripts are sent.
pub(super) struct Psql<'a> {
    /// As psql's `--dbname`; without it the environment says.
    pub(super) database: Option<&'a str>,
}

impl Psql<'_> {
    /// Runs a script that only asks, and gives the JSON that it ends with.
    pub(super) fn asked(&self, script: &str) -> Result<Value, Failure> {
        self.run(script, Exit::Unavailable)
    }

    /// Runs a script that changes something.
    pub(super) fn changed(&self, script: &str) -> Result<Value, Failure> {
        self.run(script, Exit::Unknown)
    }

    fn run(&self, script: &str, when_cut_off: Exit) -> Result<Value, Failure> {
        let output = self.output(script).map_err(|error| {
            Failure::new(
                Exit::Refused,
                format!("start psql: {error}; install it (Debian: postgresql-client), or give what `kunci fence postgres \
                     print` writes to any other client"),
            )
        })?;
        if !output.status.success() {
            return Err(failure(&output, when_cut_off));
        }
        let answer = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(answer.trim()).map_err(|error| {
            Failure::new(
                Exit::Refused,
                format!("read what psql says: {error}: expected JSON, found {answer:?}"),
            )
        })
    }

    fn output(&self, script: &str) -> io::Result<Output> {
        let mut command = Command::new("psql");
        // Nobody's ~/.psqlrc, no prompt for a password, nothing but the answer.
        command.args(["--no-psqlrc", "--no-password", "--quiet", "--no-align", "--tuples-only"]);
        command.args(["--set=ON_ERROR_STOP=1", "--file=-"]);
        if let Some(database) = self.database {
            command.arg(format!("--dbname={database}"));
        }
        if std::env::var_os("PGCONNECT_TIMEOUT").is_none() {
            command.env("PGCONNECT_TIMEOUT", CONNECT_TIMEOUT_S);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // When it doesn't read to the end, its exit code says why. It says little itself, so this can't block.
            let _ = stdin.write_all(script.as_bytes());
        }
        child.wait_with_output()
    }
}

/// What a failed psql says, and what that means.
fn failure(output: &Output, when_cut_off: Exit) -> Failure {
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    if output.status.code() != Some(NO_CONNECTION) {
        let is_denied = said.contains("permission denied for schema kunci");
        let fix = if is_denied { "; connect as the role that owns it" } else { "" };
        return Failure::new(Exit::Refused, format!("the database refuses: {said}{fix}"));
    }
    if said.contains("connection to server") && !said.contains("closed the connection unexpectedly") {
        let fix = "say with --database or the PG* variables where it is";
        return Failure::new(Exit::Unavailable, format!("{said}; {fix}"));
    }
    Failure::new(when_cut_off, format!("the connection was lost: {said}; run it again"))
}
