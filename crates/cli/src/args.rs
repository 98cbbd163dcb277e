//! The command line.
//!
//! Owns: verbs, options, their help. Never: does anything.

mod bench;
mod cluster;
mod dashed;
mod door;
mod proof;
mod top;

pub(crate) use bench::BenchArgs;
pub(crate) use cluster::{
    AddArgs, ClusterArgs, ClusterVerb, DevClusterArgs, InitArgs, JoinArgs, Joining, RemoveArgs, ReplaceArgs,
    TransferArgs,
};
pub(crate) use dashed::with_plain_lease_ids;
use door::{DOORS, beside_the_point, only_http};
pub(crate) use door::{DoorArgs, doors};
pub(crate) use proof::Proof;
pub(crate) use top::TopArgs;

use crate::acquire::Wait;
use crate::door::Needs;
use crate::duration::{parse, parse_positive, parse_wait};
use crate::exit::CODES;
use crate::output::Form;
use crate::server::{ConfigArgs, ServerArgs};
use crate::verbs::audit::AuditArgs;
use crate::verbs::fence::FenceArgs;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Locks for jobs on many machines: one holder at a time, and a fencing token with each grant.
#[derive(Debug, Parser)]
#[command(name = "kunci", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// One for each thing that a client does, and the node.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a command while holding a lock.
    Exec(ExecArgs),
    /// Get a lock, waiting for it if need be.
    #[command(after_help = CODES, after_long_help = both())]
    Acquire(AcquireArgs),
    /// Give a lease its full time again.
    #[command(after_help = CODES, after_long_help = both())]
    Renew(RenewArgs),
    /// Give a lock back.
    #[command(after_help = CODES, after_long_help = both())]
    Release(ReleaseArgs),
    /// Take a waiting request out of the queue.
    #[command(after_help = CODES, after_long_help = both())]
    Cancel(CancelArgs),
    /// Show who holds a resource; over HTTP its TTL and metadata too.
    #[command(after_help = CODES, after_long_help = both())]
    Status(StatusArgs),
    /// List resources that are held or waited for.
    #[command(after_help = CODES, mut_arg("endpoints", beside_the_point), mut_arg("url", only_http))]
    Ls(LsArgs),
    /// Show who waits for a resource, in order.
    #[command(after_help = CODES, mut_arg("endpoints", beside_the_point), mut_arg("url", only_http))]
    Queue(QueueArgs),
    /// Follow what happens to locks.
    #[command(after_help = CODES, mut_arg("endpoints", beside_the_point), mut_arg("url", only_http))]
    Watch(WatchArgs),
    /// Look at the cluster and its locks, live.
    #[command(after_help = CODES)]
    Top(TopArgs),
    /// End somebody's lease, as an operator.
    #[command(after_help = CODES, mut_arg("endpoints", beside_the_point), mut_arg("url", only_http))]
    ForceRelease(ForceReleaseArgs),
    /// Run a node.
    Server(ServerArgs),
    /// Form a cluster, change its members, see how it stands.
    #[command(arg_required_else_help = true)]
    Cluster(ClusterArgs),
    /// Run a whole cluster on this machine, for trying out.
    DevCluster(DevClusterArgs),
    /// Put load on a cluster and measure it.
    Bench(BenchArgs),
    /// Compare fencing tokens where writes land, so that late ones are turned away.
    #[command(arg_required_else_help = true)]
    Fence(FenceArgs),
    /// Show a node's settings and where each comes from.
    Config(ConfigArgs),
    /// Look at the log of a node that isn't running, and cut a last record that a crash left unfinished.
    Repair(RepairArgs),
    /// Read a node's audit log: who got, gave back and was denied which lock, and who held one at a time.
    Audit(AuditArgs),
    /// Write a completion script for a shell to standard output.
    Completions(CompletionsArgs),
    /// Write the manual pages into a folder.
    Man(ManArgs),
}

/// What `--help` says after the options of a verb that both doors can answer.
fn both() -> String {
    format!("{CODES}\n\n{DOORS}")
}

impl Verb {
    /// Whether `--json` was given.
    pub(crate) fn form(&self) -> Form {
        let server = match self {
            Self::Acquire(args) => &args.server,
            Self::Renew(args) => &args.server,
            Self::Release(args) => &args.server,
            Self::Cancel(args) => &args.server,
            Self::Status(args) => &args.server,
            Self::Ls(args) => &args.server,
            Self::Queue(args) => &args.server,
            Self::Watch(args) => &args.server,
            Self::ForceRelease(args) => &args.server,
            Self::Cluster(args) => args.server(),
            Self::Config(args) => return args.form(),
            Self::Repair(args) => return if args.json { Form::Json } else { Form::Human },
            Self::Fence(args) => return args.form(),
            Self::Audit(args) => return args.form(),
            Self::Top(args) => return if args.json { Form::Json } else { Form::Human },
            Self::Bench(args) => return if args.json { Form::Json } else { Form::Human },
            // What `exec` prints is its command's, what `dev-cluster` prints its nodes'.
            Self::Exec(_) | Self::Server(_) | Self::DevCluster(_) | Self::Completions(_) | Self::Man(_) => {
                return Form::Human;
            }
        };
        if server.json { Form::Json } else { Form::Human }
    }
}

/// Which cluster, and in which form its answer is shown.
#[derive(Debug, Args)]
pub(crate) struct Server {
    #[command(flatten)]
    pub(crate) door: DoorArgs,
    /// Print the answer as JSON, refusals included. It is the same whichever door it came through, but for `revision` and
    /// wall-clock times, which only HTTP has.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long to try again when no decision comes.
#[derive(Debug, Args)]
pub(crate) struct Trying {
    /// How long to try again while there is no node or no quorum; a request that is tried again applies once.
    #[arg(long, default_value = "5s", value_parser = parse, value_name = "DURATION")]
    pub(crate) patience: Duration,
}

/// Waiting for a lock. Without either option: as long as it takes.
#[derive(Debug, Args)]
pub(crate) struct Waiting {
    /// Wait for at most this long, such as 500ms, 30s, 1m. Without --wait and --try: as long as it takes.
    #[arg(long, value_parser = parse_wait, value_name = "DURATION", conflicts_with = "once")]
    wait: Option<Duration>,
    /// Ask once; don't wait.
    #[arg(long = "try")]
    once: bool,
}

impl Waiting {
    /// What the options mean together.
    pub(crate) fn wait(&self) -> Wait {
        match (self.once, self.wait) {
            (true, _) => Wait::Try,
            (false, Some(wait)) => Wait::UpTo(wait),
            (false, None) => Wait::NoLimit,
        }
    }
}

/// What an acquire may carry.
#[derive(Debug, Args)]
pub(crate) struct Asking {
    /// How the holder is called; for people, no proof. Without it: host name and process id.
    #[arg(long, value_name = "OWNER", allow_hyphen_values = true)]
    pub(crate) owner: Option<String>,
    /// How long the resource stays closed should the lease expire or be forced to end.
    #[arg(long, value_parser = parse, value_name = "DURATION")]
    pub(crate) lock_delay: Option<Duration>,
    /// A note for whoever looks at the lock; at most 1 KiB. Goes over HTTP only.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) metadata: Option<String>,
    /// How long to try again while there is no node or no quorum; a request that is tried again applies once.
    #[arg(long, default_value = "10s", value_parser = parse, value_name = "DURATION")]
    pub(crate) patience: Duration,
}

impl Asking {
    /// Which doors can carry it.
    pub(crate) fn needs(&self) -> Needs {
        if self.metadata.is_some() { Needs::Http("--metadata") } else { Needs::Either }
    }
}

/// `kunci acquire`.
#[derive(Debug, Args)]
pub(crate) struct AcquireArgs {
    /// The resource, such as orders/42.
    pub(crate) resource: String,
    /// How long the lease lasts without renewal. Without it: 30s, over HTTP the policy's default.
    #[arg(long, value_parser = parse_positive, value_name = "DURATION")]
    pub(crate) ttl: Option<Duration>,
    #[command(flatten)]
    pub(crate) waiting: Waiting,
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// Makes a repeated acquire apply once. Without it: 128 fresh random bits. Never use one twice.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) request_id: Option<String>,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci renew`.
#[derive(Debug, Args)]
pub(crate) struct RenewArgs {
    /// The resource.
    pub(crate) resource: String,
    #[command(flatten)]
    pub(crate) proof: Proof,
    /// A new TTL for the lease. Without it: the one that it has.
    #[arg(long, value_parser = parse_positive, value_name = "DURATION")]
    pub(crate) ttl: Option<Duration>,
    #[command(flatten)]
    pub(crate) trying: Trying,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The resource.
    pub(crate) resource: String,
    #[command(flatten)]
    pub(crate) proof: Proof,
    #[command(flatten)]
    pub(crate) trying: Trying,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The resource.
    pub(crate) resource: String,
    /// The owner that asked.
    #[arg(long, value_name = "OWNER", allow_hyphen_values = true)]
    pub(crate) owner: String,
    /// The request to cancel.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) request_id: String,
    #[command(flatten)]
    pub(crate) trying: Trying,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The resource. A free one is an answer too: exit code 0.
    pub(crate) resource: String,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Only resources whose name begins like this.
    pub(crate) prefix: Option<String>,
    /// Only resources after this one: the last of the page before.
    #[arg(long, value_name = "RESOURCE", allow_hyphen_values = true)]
    pub(crate) after: Option<String>,
    /// At most this many.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci queue`.
#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    /// The resource.
    pub(crate) resource: String,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Only resources whose name begins like this.
    pub(crate) prefix: Option<String>,
    /// Begin after this revision. Without it: with what happens from now on.
    #[arg(long, value_name = "REVISION")]
    pub(crate) after: Option<u64>,
    /// How long to try again while there is no node.
    #[arg(long, default_value = "30s", value_parser = parse, value_name = "DURATION")]
    pub(crate) patience: Duration,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci force-release`.
#[derive(Debug, Args)]
pub(crate) struct ForceReleaseArgs {
    /// The resource.
    pub(crate) resource: String,
    /// The fencing token of the lease to end, so that its successor can't be hit; `kunci status` shows it.
    #[arg(long, value_name = "N")]
    pub(crate) token: u64,
    /// Why; goes into the audit log.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) trying: Trying,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci exec`.
#[derive(Debug, Args)]
#[command(after_help = crate::exec::CODES, after_long_help = crate::exec::LONG_HELP)]
pub(crate) struct ExecArgs {
    /// The resource, such as orders/42.
    pub(crate) resource: String,
    /// How long the lease lasts without renewal; it is renewed at a third of this.
    #[arg(long, default_value = "30s", value_parser = parse_positive, value_name = "DURATION")]
    pub(crate) ttl: Duration,
    #[command(flatten)]
    pub(crate) waiting: Waiting,
    /// From TERM to KILL when the lock is about to be lost, and for processes that the command leaves behind.
    /// Without it: a quarter of the TTL, at most 5s.
    #[arg(long, value_parser = parse, value_name = "DURATION")]
    pub(crate) grace: Option<Duration>,
    /// When somebody else has the lock, end with 0 in place of 75.
    #[arg(long)]
    pub(crate) skip_ok: bool,
    /// Give resource and token to the fence in PostgreSQL, by PGOPTIONS: see docs/fencing.md.
    #[arg(long)]
    pub(crate) fence_postgres: bool,
    #[command(flatten)]
    pub(crate) asking: Asking,
    #[command(flatten)]
    pub(crate) door: DoorArgs,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// `kunci completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

/// `kunci man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder; made if it isn't there.
    pub(crate) folder: PathBuf,
}

/// What `kunci repair` needs.
#[derive(Debug, Args)]
#[command(
    after_help = "An ordinary start makes the same cut; this is for people who want to see it first.\n\
    A whole record is never taken away, not even a damaged one: it may have been acknowledged."
)]
pub(crate) struct RepairArgs {
    /// The data folder.
    #[arg(long, env = "KUNCI_DATA", default_value = "./kunci-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Write the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    /// C99: "try once" and "no limit" are separate options.
    #[test]
    fn without_wait_and_try_an_acquire_waits_as_long_as_it_takes() {
        let wait =
            |words: &str| match Cli::try_parse_from(format!("kunci acquire r {words}").split_whitespace()) {
                Ok(Cli { verb: Verb::Acquire(args) }) => Some(args.waiting.wait()),
                _ => None,
            };
        assert_eq!(wait(""), Some(Wait::NoLimit));
        assert_eq!(wait("--try"), Some(Wait::Try));
        assert_eq!(wait("--wait 1m"), Some(Wait::UpTo(Duration::from_secs(60))));
        assert_eq!(wait("--wait 1m --try"), None);
        assert_eq!(wait("--wait 0s"), None);
        assert_eq!(wait("--wait 30"), None);
    }
}
