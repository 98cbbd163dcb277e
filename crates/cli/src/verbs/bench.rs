//! `kunci bench`.
//!
//! Owns: which cluster, Ctrl-C, and where the figures go. Never: the load itself; that is `kunci_bench`.

use crate::args::BenchArgs;
use crate::door::{Doors, ENDPOINTS, Source};
use crate::exit::{Exit, Failure};
use crate::output::{Form, Output};
use crate::signals::Signals;
use kunci_bench::{Bench, BenchError, Plan, Report};
use std::io::IsTerminal as _;
use std::net::IpAddr;
use tokio_util::sync::CancellationToken;

/// Puts load on a cluster, and prints what it found.
pub(crate) fn run(args: &BenchArgs, output: &Output) -> Result<Exit, Failure> {
    let plan = args.plan().map_err(Failure::usage)?;
    let endpoints = endpoints(&args.door.doors())?;
    // Many threads: the load shouldn't be what is measured.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::usage(format!("start the runtime: {error}")))?;
    let exit = runtime.block_on(until_signalled(args, plan, &endpoints, output));
    // After a second signal nothing is waited for.
    runtime.shutdown_background();
    exit
}

async fn until_signalled(
    args: &BenchArgs,
    plan: Plan,
    endpoints: &[String],
    output: &Output,
) -> Result<Exit, Failure> {
    let mut signals =
        Signals::catch_ending().map_err(|error| Failure::usage(format!("catch signals: {error}")))?;
    let stop = CancellationToken::new();
    let mut measuring = std::pin::pin!(measure(args, plan, endpoints, stop.clone(), output));
    tokio::select! {
        biased;
        _ = signals.next_ending() => {}
        exit = &mut measuring => return exit,
    }
    stop.cancel();
    output.say("ending: giving back what is held; once more ends it at once");
    tokio::select! {
        biased;
        signal = signals.next_ending() => {
            output.say("ended at once: locks that are held run out by themselves");
            Ok(Exit::Signal(signal.as_raw()))
        }
        exit = measuring => exit,
    }
}

async fn measure(
    args: &BenchArgs,
    plan: Plan,
    endpoints: &[String],
    stop: CancellationToken,
    output: &Output,
) -> Result<Exit, Failure> {
    let bench = Bench::connect(plan, endpoints, stop).await.map_err(|error| failure(&error))?;
    output.say(&bench.announcement());
    let tells = args.progress || std::io::stderr().is_terminal();
    let report = bench.run(|progress| {
        if tells {
            output.say(&progress.to_string());
        }
    });
    let report = report.await.map_err(|error| failure(&error))?;
    print(&report, output)?;
    if report.operations == 0 && !report.errors.is_empty() {
        output.say("no operation succeeded");
        return Ok(Exit::Refused);
    }
    Ok(Exit::Done)
}

fn print(report: &Report, output: &Output) -> Result<(), Failure> {
    match output.form() {
        Form::Human => output.line(&report.table()),
        Form::Json => {
            let json = serde_json::to_string(report).map_err(|error| {
                Failure::new(Exit::Refused, format!("write the figures as JSON: {error}"))
            })?;
            output.line(&json)
        }
    }
}

fn failure(error: &BenchError) -> Failure {
    match error {
        BenchError::Plan(invalid) => Failure::usage(invalid.to_string()),
        BenchError::Connect(source) => Failure::new(
            Exit::Unavailable,
            format!("{source}; check --endpoints, or start a node with `kunci server`"),
        ),
        other => Failure::new(Exit::Refused, other.to_string()),
    }
}

/// The addresses to load. What an environment names may be anybody's cluster, so only one of this machine is taken from
/// there.
fn endpoints(doors: &Doors) -> Result<Vec<String>, Failure> {
    let (doors, source) = doors.native("`kunci bench`")?;
    let elsewhere = doors.addresses().iter().find(|address| !is_of_this_machine(address));
    match elsewhere {
        Some(other) if source == Source::Variable => Err(Failure::usage(format!(
            "{ENDPOINTS} names {other}, which isn't this machine: a bench takes whatever a cluster can give, so name \
             the cluster outright with --endpoints"
        ))),
        _ => Ok(doors.addresses().to_vec()),
    }
}

fn is_of_this_machine(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(option: Option<&str>, variable: Option<&str>) -> Result<Vec<String>, Failure> {
        let variable = |name: &str| variable.filter(|_| name == ENDPOINTS).map(str::to_owned);
        endpoints(&Doors::find(option, None, variable))
    }

    #[test]
    fn the_option_wins_over_the_environment_over_this_machine() {
        assert_eq!(named(Some("h:1, g:2"), Some("[::1]:3")).unwrap(), ["h:1", "g:2"]);
        assert_eq!(named(None, Some("[::1]:3,localhost:4")).unwrap(), ["[::1]:3", "localhost:4"]);
        assert_eq!(named(None, None).unwrap(), ["127.0.0.1:7401"]);
    }

    #[test]
    fn a_cluster_elsewhere_is_loaded_only_when_it_is_named_outright() {
        for elsewhere in ["10.0.0.1:7401", "127.0.0.1:7401,db.example:7401", "localhost.example:7401"] {
            let refused = named(None, Some(elsewhere)).unwrap_err().text;
            assert!(refused.contains("outright with --endpoints"), "{refused}");
            assert!(named(Some(elsewhere), None).is_ok());
        }
    }
}
