//! `kunci fence proxy`.
//!
//! Owns: the settings file, log lines, signals, the exit code. Never: a request; that is `kunci_fence::proxy`.

use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::signals::Signals;
use clap::Args;
use kunci_fence::proxy::{Ended, LogFormat, Proxy, Settings, StartError};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

const AFTER_HELP: &str = "\
The least that a file has:

  listen = \"127.0.0.1:7480\"
  upstream = \"http://127.0.0.1:8080\"
  gate = \"./kunci-gate\"

Every write (whatever isn't GET, HEAD, OPTIONS or TRACE) then needs X-Kunci-Resource and X-Kunci-Token. RUST_LOG says
how much is logged.

Exit codes:
   0  stopped, as TERM or INT asked
   1  not started: the gate or an address can't be used
   2  usage: a setting can't be used as given
 128 + signal: ended at once, by a second signal";

/// `kunci fence proxy`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ProxyArgs {
    /// The settings: a TOML file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Runs the proxy until it is told to stop.
pub(crate) fn run(args: &ProxyArgs, output: &Output) -> Result<Exit, Failure> {
    let settings = Settings::read(&args.config).map_err(|error| Failure::usage(error.to_string()))?;
    begin_log(settings.log_format());
    allow_more_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Refused, format!("start the runtime: {error}")))?;
    let exit = runtime.block_on(until_signalled(settings, output));
    // After a second signal nothing is waited for.
    runtime.shutdown_background();
    exit
}

async fn until_signalled(settings: Settings, output: &Output) -> Result<Exit, Failure> {
    let mut signals =
        Signals::catch_ending().map_err(|error| Failure::usage(format!("catch signals: {error}")))?;
    let proxy = Proxy::start(settings).await.map_err(|error| not_started(&error))?;
    let address = proxy.address().map_err(|error| Failure::new(Exit::Refused, error.to_string()))?;
    let metrics = proxy.admin_address().map(|address| format!(", metrics at http://{address}/metrics"));
    output.say(&format!("serving at http://{address}{}", metrics.unwrap_or_default()));
    let stop = CancellationToken::new();
    let mut serving = std::pin::pin!(proxy.run(stop.clone().cancelled_owned()));
    tokio::select! {
        biased;
        _ = signals.next_ending() => {}
        _ = &mut serving => return Ok(Exit::Done),
    }
    stop.cancel();
    output.say("stopping: requests that are on the way are waited for; once more ends it at once");
    tokio::select! {
        biased;
        signal = signals.next_ending() => Ok(Exit::Signal(signal.as_raw())),
        ended = serving => {
            if ended == Ended::Unfinished {
                output.say("stopped; a request may still have an effect: the next start waits for the settle time");
            }
            Ok(Exit::Done)
        }
    }
}

fn not_started(error: &StartError) -> Failure {
    match error {
        StartError::Report(_) => Failure::usage(error.to_string()),
        _ => Failure::new(Exit::Refused, error.to_string()),
    }
}

/// Each request takes two sockets, and the usual 1,024 files are few for that. Nothing is lost where more isn't allowed: then
/// connections wait.
fn allow_more_files() {
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    let _ = setrlimit(Resource::Nofile, files);
}

/// From now on events are written to standard error.
fn begin_log(format: LogFormat) {
    let levels = std::env::var("RUST_LOG").unwrap_or_default();
    let filter = tracing_subscriber::EnvFilter::try_new(if levels.is_empty() { "info" } else { &levels });
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let lines = lines.with_ansi(std::io::stderr().is_terminal());
    // Already begun is fine.
    let _ = match format {
        LogFormat::Text => lines.with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}
