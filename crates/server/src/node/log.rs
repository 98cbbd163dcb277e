//! Log lines: to standard error, for people or for programs. With the feature `otlp`, spans too, to a collector.
//!
//! Owns: which form they have, and what is too much of a library. Never: what is said.

use crate::config::LogFormat;
use std::io::IsTerminal as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// Libraries that speak of every step at `info`, and the consensus library at `warn` of each heartbeat that a member
/// which is down doesn't get: twenty lines a second. A person who wants that names them in the directives.
const QUIET: &str = "openraft=error,raft_log=warn,chunked_wal=warn";

/// A layer, whichever form it has.
type AnyLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// What has to be ended in good order.
#[derive(Debug, Default)]
pub(super) struct Logs {
    #[cfg(feature = "otlp")]
    exporting: Option<crate::otlp::Exporting>,
}

/// Why spans can't be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogError {
    /// This program can't.
    #[cfg(not(feature = "otlp"))]
    #[error(
        "--otlp: this kunci was built without it; build it with `--features otlp`, or leave the setting out"
    )]
    NotBuilt,
    /// It can, and something is wrong.
    #[cfg(feature = "otlp")]
    #[error("--otlp: {0}")]
    Unusable(String),
}

/// From now on events are written. Once a process; later calls change nothing. `collector` is where spans go, `node` what
/// they are told to be from.
pub(super) fn begin(
    format: LogFormat,
    levels: &str,
    collector: Option<&str>,
    node: &str,
) -> Result<Logs, LogError> {
    // The last directive for a target wins, so what the person says comes last. The settings were checked before.
    let filter = EnvFilter::try_new(format!("{QUIET},{levels}")).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = lines.with_ansi(std::io::stderr().is_terminal());
    let lines: AnyLayer = match format {
        LogFormat::Text => lines.with_target(false).with_filter(filter).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).with_filter(filter).boxed(),
    };
    let (spans, logs) = match collector {
        Some(collector) => collected(collector, node)?,
        None => (Vec::new(), Logs::default()),
    };
    // Already begun is fine: a test may run two nodes in one process.
    let _ = tracing_subscriber::registry()
        .with([vec![lines], spans].into_iter().flatten().collect::<Vec<_>>())
        .try_init();
    Ok(logs)
}

#[cfg(feature = "otlp")]
fn collected(collector: &str, node: &str) -> Result<(Vec<AnyLayer>, Logs), LogError> {
    use tracing_subscriber::filter::{LevelFilter, Targets};

    let (layer, exporting) = crate::otlp::layer(collector, node).map_err(LogError::Unusable)?;
    // Only what is about a request that is followed, whatever the log shows.
    let requests = Targets::new().with_target("kunci::request", LevelFilter::DEBUG);
    Ok((vec![layer.with_filter(requests).boxed()], Logs { exporting: Some(exporting) }))
}

#[cfg(not(feature = "otlp"))]
fn collected(_: &str, _: &str) -> Result<(Vec<AnyLayer>, Logs), LogError> {
    Err(LogError::NotBuilt)
}

impl Logs {
    /// Lets out what isn't written yet.
    pub(super) async fn end(self) {
        #[cfg(feature = "otlp")]
        if let Some(exporting) = self.exporting {
            exporting.end().await;
        }
    }
}
