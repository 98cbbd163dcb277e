//! The `kunci` binary: a node under `kunci server`, and one verb for each thing that a client does.
//!
//! Owns: reading the command line, choosing the verb, the exit code. Never: a rule of the locks, or output that
//! isn't in `--json` too.

mod acquire;
mod answer;
mod args;
mod client;
mod dev_cluster;
mod door;
mod duration;
mod exec;
mod exit;
mod identity;
mod lease;
mod output;
mod parent;
mod patience;
mod server;
mod signals;
mod sse;
mod url;
mod verbs;

use args::{Cli, Verb};
use clap::Parser as _;
use door::Needs;
use exit::{Exit, Failure};
use output::Output;
use std::process::ExitCode;

/// Nodes and clients allocate on one thread what another one frees, and the system's allocator takes long for that.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(args::with_plain_lease_ids(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing more can be said when not even this can be printed.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::DONE });
        }
    };
    let output = Output::new(cli.verb.form());
    let exit = match run(cli, &output) {
        Ok(exit) => exit,
        Err(failure) => {
            output.report(&failure);
            failure.exit
        }
    };
    ExitCode::from(exit.code())
}

fn run(cli: Cli, output: &Output) -> Result<Exit, Failure> {
    match cli.verb {
        Verb::Server(args) => server::run(args),
        Verb::Config(args) => server::show_config(args),
        Verb::Repair(args) => verbs::repair::run(&args, output),
        Verb::Audit(args) => verbs::audit::run(&args, output),
        Verb::Bench(args) => verbs::bench::run(&args, output),
        Verb::Fence(args) => verbs::fence::run(&args, output),
        Verb::Completions(args) => verbs::completions::run(&args, output),
        Verb::Man(args) => verbs::man::run(&args, output),
        // One thread: the kernel ties a child's parent-death signal to the thread that started the child.
        verb => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::usage(format!("start the runtime: {error}")))?
            .block_on(talk(verb, output)),
    }
}

/// The verbs that talk to a server.
async fn talk(verb: Verb, output: &Output) -> Result<Exit, Failure> {
    let door = |of: &args::Server, needs| of.door.doors().door(needs);
    let http = |of: &args::Server, what| of.door.doors().http(what);
    match verb {
        Verb::Acquire(args) => {
            verbs::acquire::run(&args, &door(&args.server, args.asking.needs())?, output).await
        }
        Verb::Renew(args) => {
            verbs::renew::run(&args, &door(&args.server, args.proof.needs_in_a_renewal())?, output).await
        }
        Verb::Release(args) => verbs::release::run(&args, &door(&args.server, Needs::Either)?, output).await,
        Verb::Cancel(args) => verbs::cancel::run(&args, &door(&args.server, Needs::Either)?, output).await,
        Verb::Status(args) => verbs::status::run(&args, &door(&args.server, Needs::Either)?, output).await,
        Verb::Ls(args) => verbs::ls::run(&args, &http(&args.server, "`kunci ls`")?, output).await,
        Verb::Queue(args) => verbs::queue::run(&args, &http(&args.server, "`kunci queue`")?, output).await,
        Verb::Watch(args) => verbs::watch::run(&args, &http(&args.server, "`kunci watch`")?, output).await,
        Verb::ForceRelease(args) => {
            let client = http(&args.server, "`kunci force-release`")?;
            verbs::force_release::run(&args, &client, output).await
        }
        Verb::Top(args) => verbs::top::run(&args, output).await,
        Verb::Cluster(args) => verbs::cluster::run(&args, output).await,
        Verb::DevCluster(args) => dev_cluster::run(&args, output).await,
        Verb::Exec(args) => exec::run(&args, output).await,
        Verb::Server(_)
        | Verb::Config(_)
        | Verb::Repair(_)
        | Verb::Audit(_)
        | Verb::Bench(_)
        | Verb::Fence(_)
        | Verb::Completions(_)
        | Verb::Man(_) => Ok(Exit::Done),
    }
}
