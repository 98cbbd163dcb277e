//! The command line of `kunci bench`.

use super::door::DoorArgs;
use crate::duration::{parse, parse_positive};
use clap::{Args, ValueEnum};
use kunci_bench::{Pace, Plan, Target, Workload};
use std::num::NonZeroU32;
use std::time::Duration;

/// The locks of the mix, when nobody says how many.
const HELD_DEFAULT: u32 = 1_000;

const ENDPOINTS_HELP: &str = "The native doors of the cluster, as host:port,…: its leader is found from any of them. \
    Without it KUNCI_ENDPOINTS where that names this machine, else 127.0.0.1:7401";

const URL_HELP: &str = "The HTTP address of one node, such as http://127.0.0.1:7400, to load that in place of native \
    doors. Also KUNCI_URL, where that names this machine";

const AFTER_HELP: &str = "\
Without --rate each client waits for its answer before it goes on (a closed loop): that finds how
much a cluster gets done. With --rate operations start at fixed times, whether or not a client is
free, and a latency counts from the time at which the operation was to start (an open loop): that
finds how long a user waits.

Names and locks are under bench/<random>/ only. Ctrl-C ends it early, with the figures so far, and
gives back what is held; a second one ends it at once, and locks run out.

Exit codes:
   0  measured, also when it was ended early
   1  no operation succeeded, or the locks to begin with couldn't be had
   2  usage: an argument can't be used as given
  69  no node reachable";

/// `kunci bench`.
#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
    arg_required_else_help = true,
    mut_arg("url", |option| option.help(URL_HELP)),
    mut_arg("endpoints", |option| option.help(ENDPOINTS_HELP))
)]
pub(crate) struct BenchArgs {
    /// What the clients do.
    workload: BenchWorkload,
    #[command(flatten)]
    pub(crate) door: DoorArgs,
    /// How many operations may be under way at once. Without it 16, and with --rate up to 256.
    #[arg(long, value_name = "N")]
    clients: Option<u32>,
    /// How many connections the clients share, for each address. Without it one for each client, up to 16. Over HTTP each
    /// client has one of its own.
    #[arg(long, value_name = "N")]
    connections: Option<u32>,
    /// Start so many operations a second, all clients together: an open loop.
    #[arg(long, value_name = "N")]
    rate: Option<NonZeroU32>,
    /// How many locks stay held, with `mix`. Without it 1000.
    #[arg(long, value_name = "N")]
    held: Option<u32>,
    /// How long to measure.
    #[arg(long, default_value = "10s", value_parser = parse_positive, value_name = "DURATION")]
    duration: Duration,
    /// How long to go on before that without counting.
    #[arg(long, default_value = "2s", value_parser = parse, value_name = "DURATION")]
    warm_up: Duration,
    /// How long leases last without renewal.
    #[arg(long, default_value = "30s", value_parser = parse_positive, value_name = "DURATION")]
    ttl: Duration,
    /// Say each second how it goes, also when standard error is no terminal.
    #[arg(long)]
    pub(crate) progress: bool,
    /// Print the figures as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the clients of a bench do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchWorkload {
    /// Each client acquires and releases a resource of its own.
    AcquireRelease,
    /// Locks are held and renewed while others are acquired and released: a third of each.
    Mix,
    /// All clients queue for one resource, and hand it on.
    HandOff,
    /// Each client asks for the status of locks that are held.
    Reads,
}

impl BenchArgs {
    /// What the options mean together.
    pub(crate) fn plan(&self, target: &Target) -> Result<Plan, String> {
        if matches!(target, Target::Http(_)) && self.connections.is_some() {
            return Err(
                "--connections is for native doors: over HTTP each client has one of its own".to_owned()
            );
        }
        let workload = match (self.workload, self.held) {
            (BenchWorkload::Mix, held) => Workload::Mix { held: held.unwrap_or(HELD_DEFAULT) },
            (_, Some(_)) => return Err("--held is for `mix`: leave it out".to_owned()),
            (BenchWorkload::AcquireRelease, None) => Workload::AcquireRelease,
            (BenchWorkload::HandOff, None) => Workload::HandOff,
            (BenchWorkload::Reads, None) => Workload::Reads,
        };
        let pace = self.rate.map_or(Pace::Closed, |per_second| Pace::Open { per_second });
        let by_itself = Plan::new(workload, pace);
        let clients = self.clients.unwrap_or(by_itself.clients);
        let connections = self.connections.unwrap_or_else(|| Plan::connections_for(clients));
        let Self { ttl, warm_up, duration, .. } = *self;
        let plan = Plan { clients, connections, ttl, warm_up, duration, ..by_itself };
        plan.check().map_err(|invalid| invalid.to_string())?;
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use crate::args::{Cli, Verb};
    use clap::Parser as _;
    use kunci_bench::{Pace, Plan, Target, Workload};

    fn plan(words: &str) -> Result<Plan, String> {
        let words = format!("kunci bench {words}");
        match Cli::try_parse_from(words.split_whitespace()).unwrap().verb {
            Verb::Bench(args) => args.plan(&Target::Native(Vec::new())),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_options_a_bench_is_a_closed_loop_as_planned_by_itself() {
        assert_eq!(plan("hand-off"), Ok(Plan::new(Workload::HandOff, Pace::Closed)));
        assert_eq!(plan("mix"), Ok(Plan::new(Workload::Mix { held: 1_000 }, Pace::Closed)));
    }

    #[test]
    fn clients_come_with_connections_enough() {
        let plan = plan("acquire-release --clients 512 --rate 600").unwrap();
        assert_eq!((plan.clients, plan.connections), (512, 16));
        assert!(matches!(plan.pace, Pace::Open { per_second } if per_second.get() == 600));
    }

    #[test]
    fn options_that_do_not_fit_are_refused() {
        assert!(plan("reads --held 5").unwrap_err().contains("--held"));
        assert!(plan("hand-off --clients 1").unwrap_err().contains("expected 2"));
        let Verb::Bench(args) = Cli::parse_from(["kunci", "bench", "mix", "--connections", "2"]).verb else {
            panic!("another verb")
        };
        let refused = args.plan(&Target::Http("http://127.0.0.1:1".to_owned())).unwrap_err();
        assert!(refused.contains("over HTTP"), "{refused}");
    }
}
