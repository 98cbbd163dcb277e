//! One node's life: open the doors, find or be given a place in a cluster, serve, hand over, stop.
//!
//! Owns: the order of starting and stopping, and how the process ends. Never: a request.

mod beginning;
mod doors;
mod ground;
mod house;
mod log;
mod news;
mod signals;

use crate::audit::Audit;
use crate::config::Settings;
use crate::streams::Listener;
use beginning::Beginning;
use house::House;
use kunci_replica::{Observer, Replica};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signals::Signals;
use std::sync::Arc;
use tracing::error;

pub use ground::{Founding, Ground, Listeners, StopSignals};

/// What a process ends with that can't go on: `EX_SOFTWARE` of sysexits.
pub const EXIT_FATAL: i32 = 70;
/// How a node ended. Why was logged already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Somebody asked it to stop, and it did.
    Stopped,
    /// It was asked twice, and ended at once, by this signal.
    AtOnce(i32),
    /// It never started.
    NotStarted,
    /// It couldn't go on.
    Failed,
}

/// Runs a node until somebody stops it.
pub async fn run(settings: &Settings) -> Ended {
    let node = settings.reached_http(settings.http);
    let logs = match log::begin(settings.log_format, &settings.log_levels, settings.otlp.as_deref(), &node) {
        Ok(logs) => logs,
        Err(why) => {
            // Nobody else can say it.
            let _ = log::begin(settings.log_format, &settings.log_levels, None, &node);
            error!("{why}");
            return Ended::NotStarted;
        }
    };
    end_on_panic();
    let ended = started(settings).await;
    logs.end().await;
    ended
}

async fn started(settings: &Settings) -> Ended {
    raise_open_files_max();
    let signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => {
            error!("catch signals: {error}");
            return Ended::NotStarted;
        }
    };
    // Before the data folder: a second node by mistake shouldn't form a cluster that nobody wants.
    match doors::open(settings).await {
        Ok(ground) => live(ground, signals, |_| {}).await,
        Err(why) => {
            error!("{why}");
            Ended::NotStarted
        }
    }
}

/// Lives on any ground, from open doors to the end, whichever it is. `entered` is shown the replica once it is there.
pub async fn live<L: Listener>(
    ground: Ground<L>,
    mut signals: impl StopSignals,
    entered: impl FnOnce(&Replica) + Send,
) -> Ended {
    let Ground { listeners, http, peers, storage, mut replica, audit, http_limits, native_limits, founding } =
        ground;
    let data = replica.data.clone();
    let audit = match audit.map(Audit::start).transpose() {
        Ok(audit) => audit,
        Err(error) => {
            error!("start the thread of the audit log: {error}");
            return Ended::NotStarted;
        }
    };
    replica.observer = audit.clone().map(|audit| Arc::new(audit) as Arc<dyn Observer>);
    let mut house = House::new(http_limits, native_limits, &replica.member, audit);
    let front_doors = house.doors.clone();
    let beginning = Beginning { storage, config: replica, founding, peers, doors: &front_doors };
    let begun = if beginning.is_awaited() {
        house.serve(listeners);
        signals.or_else(beginning.wait(http)).await
    } else {
        // Clients are answered only after that, so that nobody takes this node for one without a cluster.
        let begun = signals.or_else(beginning.at_once()).await;
        if let Ok(Ok(_)) = &begun {
            house.serve(listeners);
        }
        begun
    };
    let replica = match begun {
        Ok(Ok(replica)) => replica,
        Ok(Err(why)) => {
            error!("{why}");
            house.close().await;
            return Ended::NotStarted;
        }
        Err(signal) => return house.stop(None, signal, &mut signals).await,
    };
    kunci_process::spawn(news::announce(replica.clone(), http));
    kunci_process::spawn(news::tell(replica.clone(), data));
    entered(&replica);
    tokio::select! {
        biased;
        signal = signals.next() => house.stop(Some(&replica), signal, &mut signals).await,
        why = replica.failed() => {
            error!("this node can't go on: {why}; nothing that was acknowledged is lost, start it again");
            Ended::Failed
        }
        why = house.ended() => {
            error!("a door ended by itself: {why}");
            Ended::Failed
        }
    }
}

/// A panic is a bug, and a node with a bug may not go on: half of it would look alive.
fn end_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        error!("this node has a bug and ends: {panic}");
        std::process::exit(EXIT_FATAL);
    }));
}

/// Each connection is an open file, and the usual limit is from a time when a process had few.
fn raise_open_files_max() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
