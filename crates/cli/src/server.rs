//! `kunci server`, and `kunci config show` beside it.
//!
//! Owns: handing the node its settings, and the exit code of a node. Never: runs a lock itself, or knows what a
//! setting means.

mod config_show;
mod flags;

pub(crate) use config_show::{ConfigArgs, show_config};
pub(crate) use flags::ServerArgs;

use crate::exit::{Exit, Failure};
use kunci_server::config::{ConfigError, Layers, Settings};
use kunci_server::node::{self, Ended};
use std::num::NonZeroU64;

/// What `kunci server --help` says after its options.
const AFTER_HELP: &str = "\
A setting is a flag (--log-format), an environment variable (KUNCI_LOG_FORMAT) and a key in the
settings file (log_format = \"json\"). The first of these that says something counts, then the
default. `kunci config show` says which one it was.

Exit codes:
   0  stopped, as TERM or INT asked
   1  not started: the data folder or the address can't be used
   2  usage: a setting can't be used as given
  70  ended by itself: the log says why; start it again
 128 + signal: ended at once, by a second signal";

/// How late the system may end a sleep of this process, in ns.
const TIMER_SLACK_NS: u64 = 1_000;

/// Runs a node until it is stopped.
pub(crate) fn run(args: ServerArgs) -> Result<Exit, Failure> {
    let settings = Settings::check(&layers(args)?).map_err(unusable)?;
    // The system ends a sleep up to 50 us late unless told otherwise, and the log's writer sleeps for 5 before each sync.
    // Threads that are started from here take this over. Where it can't be had, everything is only a little slower.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(TIMER_SLACK_NS));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Refused, format!("start the runtime: {error}")))?;
    let ended = runtime.block_on(node::run(&settings));
    // Whatever still runs has nothing left to do, and a stop at once may not wait for it.
    runtime.shutdown_background();
    match ended {
        Ended::Stopped => Ok(Exit::Done),
        Ended::AtOnce(signal) => Ok(Exit::Signal(signal)),
        Ended::NotStarted => Ok(Exit::Refused),
        Ended::Failed => Ok(Exit::Fatal),
    }
}

/// The settings as they were given.
fn layers(args: ServerArgs) -> Result<Layers, Failure> {
    Layers::read(args.given, args.file, |name| std::env::var_os(name)).map_err(unusable)
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands over what it has")]
fn unusable(error: ConfigError) -> Failure {
    Failure::usage(error.to_string())
}
