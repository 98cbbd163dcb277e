//! Log lines: to standard error, for people or for programs.

use crate::config::LogFormat;
use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;

/// Libraries that speak of every step at `info`, and the consensus library at `warn` of each heartbeat that a member
/// which is down doesn't get: twenty lines a second. A person who wants that names them in the directives.
const QUIET: &str = "openraft=error,raft_log=warn,chunked_wal=warn";

/// From now on events are written. Once a process; later calls change nothing.
pub(super) fn begin(format: LogFormat, levels: &str) {
    // The last directive for a target wins, so what the person says comes last. The settings were checked before.
    let filter = EnvFilter::try_new(format!("{QUIET},{levels}")).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let lines = lines.with_ansi(std::io::stderr().is_terminal());
    // Already begun is fine: a test may run two nodes in one process.
    let _ = match format {
        LogFormat::Text => lines.with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}
