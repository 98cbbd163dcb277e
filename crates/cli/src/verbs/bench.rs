//! `kunci bench`.
//!
//! Owns: which cluster, Ctrl-C, and where the figures go. Never: the load itself; that is `kunci_bench`.

use crate::args::BenchArgs;
use crate::door::{Door, Doors, ENDPOINTS, Needs, Source, URL};
use crate::exit::{Exit, Failure};
use crate::output::{Form, Output};
use crate::signals::Signals;
use kunci_bench::{Bench, BenchError, Plan, Report, Target};
use std::io::IsTerminal as _;
use std::net::IpAddr;
use tokio_util::sync::CancellationToken;

/// Puts load on a cluster, and prints what it found.
pub(crate) fn run(args: &BenchArgs, output: &Output) -> Result<Exit, Failure> {
    let target = target(&args.door.doors())?;
    let plan = args.plan(&target).map_err(Failure::usage)?;
    // Many threads: the load shouldn't be what is measured.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::usage(format!("start the runtime: {error}")))?;
    let exit = runtime.block_on(until_signalled(args, plan, target, output));
    // After a second signal nothing is waited for.
    runtime.shutdown_background();
    exit
}

async fn until_signalled(
    args: &BenchArgs,
    plan: Plan,
    target: Target,
    output: &Output,
) -> Result<Exit, Failure> {
    let mut signals =
        Signals::catch_ending().map_err(|error| Failure::usage(format!("catch signals: {error}")))?;
    let stop = CancellationToken::new();
    let mut measuring = std::pin::pin!(measure(args, plan, target, stop.clone(), output));
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
    target: Target,
    stop: CancellationToken,
    output: &Output,
) -> Result<Exit, Failure> {
    let bench = Bench::connect(plan, target, stop).await.map_err(|error| failure(&error))?;
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
            format!("{source}; check --endpoints or --url, or start a node with `kunci server`"),
        ),
        other => Failure::new(Exit::Refused, other.to_string()),
    }
}

/// The cluster to load. What an environment names may be anybody's, so only one of this machine is taken from there.
fn target(doors: &Doors) -> Result<Target, Failure> {
    let (target, variable, option) = match doors.door(Needs::Either)? {
        Door::Native(native) => (Target::Native(native.addresses().to_vec()), ENDPOINTS, "--endpoints"),
        Door::Http(client) => (Target::Http(client.url().to_owned()), URL, "--url"),
    };
    let elsewhere = target.addresses().iter().find(|address| !is_of_this_machine(address));
    match elsewhere {
        Some(other) if doors.source() == Source::Variable => Err(Failure::usage(format!(
            "{variable} names {other}, which isn't this machine: a bench takes whatever a cluster can give, so name \
             the cluster outright with {option}"
        ))),
        _ => Ok(target),
    }
}

fn is_of_this_machine(address: &str) -> bool {
    let address = address.trim_start_matches("http://");
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(option: Option<&str>, variable: Option<&str>) -> Result<Target, Failure> {
        let variable = |name: &str| variable.filter(|_| name == ENDPOINTS).map(str::to_owned);
        target(&Doors::find(option, None, variable))
    }

    fn with_url(option: Option<&str>, variable: Option<&str>) -> Result<Target, Failure> {
        let variable = |name: &str| variable.filter(|_| name == URL).map(str::to_owned);
        target(&Doors::find(None, option, variable))
    }

    fn native(endpoints: &[&str]) -> Target {
        Target::Native(endpoints.iter().map(|text| (*text).to_owned()).collect())
    }

    #[test]
    fn the_option_wins_over_the_environment_over_this_machine() {
        assert_eq!(named(Some("h:1, g:2"), Some("[::1]:3")).unwrap(), native(&["h:1", "g:2"]));
        assert_eq!(named(None, Some("[::1]:3,localhost:4")).unwrap(), native(&["[::1]:3", "localhost:4"]));
        assert_eq!(named(None, None).unwrap(), native(&["127.0.0.1:7401"]));
        assert_eq!(with_url(Some("http://h:1"), None).unwrap(), Target::Http("http://h:1".to_owned()));
        assert_eq!(
            with_url(None, Some("http://[::1]:1")).unwrap(),
            Target::Http("http://[::1]:1".to_owned())
        );
    }

    #[test]
    fn a_cluster_elsewhere_is_loaded_only_when_it_is_named_outright() {
        for elsewhere in ["10.0.0.1:7401", "127.0.0.1:7401,db.example:7401", "localhost.example:7401"] {
            let refused = named(None, Some(elsewhere)).unwrap_err().text;
            assert!(refused.contains("outright with --endpoints"), "{refused}");
            assert!(named(Some(elsewhere), None).is_ok());
        }
        let refused = with_url(None, Some("http://db.example:7400")).unwrap_err().text;
        assert!(refused.starts_with("KUNCI_URL") && refused.contains("outright with --url"), "{refused}");
    }
}
