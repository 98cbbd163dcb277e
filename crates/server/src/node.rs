//! One node's life: open the doors, find or be given a place in a cluster, serve, hand over, stop.
//!
//! Owns: the order of starting and stopping, and how the process ends. Never: a request.

mod beginning;
mod doors;
mod log;
mod news;
mod signals;

use crate::config::Settings;
use crate::http::HttpDoor;
use beginning::Beginning;
use doors::Doors;
use kunci_replica::{Lead, Replica};
use signals::Signals;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

/// What a process ends with that can't go on: `EX_SOFTWARE` of sysexits.
pub const EXIT_FATAL: i32 = 70;
/// How long a stop of the replica may take before the process ends without it; its disk is as after a crash then.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// After a hand-over, how long a node goes on as before: the other members hear of the new leader with its heartbeats,
/// and until then they pass calls on to this node, which sends them back.
const HEARD_WITHIN: Duration = Duration::from_millis(250);

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
    log::begin(settings.log_format, &settings.log_levels);
    end_on_panic();
    let signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => {
            error!("catch signals: {error}");
            return Ended::NotStarted;
        }
    };
    // Before the data folder: a second node by mistake shouldn't form a cluster that nobody wants.
    match Doors::open(settings).await {
        Ok(doors) => live(settings, doors, signals).await,
        Err(why) => {
            error!("{why}");
            Ended::NotStarted
        }
    }
}

async fn live(settings: &Settings, doors: Doors, mut signals: Signals) -> Ended {
    let Doors { listener, address, peers, me } = doors;
    let mut house = House::new(HttpDoor::new(settings.http_limits.clone(), me.clone()));
    let door = house.door.clone();
    let beginning = Beginning { settings, peers, me, door: &door };
    let begun = if beginning.is_awaited() {
        house.serve(listener);
        signals.or_else(beginning.wait(address)).await
    } else {
        // HTTP is answered only after that, so that nobody takes this node for one without a cluster.
        let begun = signals.or_else(beginning.at_once()).await;
        if let Ok(Ok(_)) = &begun {
            house.serve(listener);
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
    tokio::spawn(news::announce(replica.clone(), address));
    tokio::spawn(news::tell(replica.clone(), settings.data.clone()));
    tokio::select! {
        signal = signals.next() => house.stop(Some(&replica), signal, &mut signals).await,
        why = replica.failed() => {
            error!("this node can't go on: {why}; nothing that was acknowledged is lost, start it again");
            Ended::Failed
        }
        why = house.ended() => {
            error!("the HTTP door ended by itself: {why}");
            Ended::Failed
        }
    }
}

/// What clients come to.
struct House {
    door: HttpDoor,
    stop: CancellationToken,
    served: Option<JoinHandle<()>>,
}

impl House {
    fn new(door: HttpDoor) -> Self {
        Self { door, stop: CancellationToken::new(), served: None }
    }

    fn serve(&mut self, listener: TcpListener) {
        self.served = Some(tokio::spawn(self.door.clone().serve(listener, self.stop.clone())));
    }

    /// Why nobody is answered any more, though nobody wanted that.
    async fn ended(&mut self) -> String {
        match &mut self.served {
            Some(served) => format!("{:?}", served.await),
            None => std::future::pending().await,
        }
    }

    /// Ends by a signal, in good order unless there is a second one.
    async fn stop(mut self, replica: Option<&Replica>, signal: i32, signals: &mut Signals) -> Ended {
        info!("{} received: stopping; a second signal stops at once", signals::name(signal));
        match signals.or_else(self.leave(replica)).await {
            Ok(()) => Ended::Stopped,
            Err(signal) => Ended::AtOnce(signal),
        }
    }

    /// Readiness drops first, leadership moves, every open request gets its answer (from the new leader if need be), and
    /// then the replica ends. Each step is bounded.
    async fn leave(&mut self, replica: Option<&Replica>) {
        self.door.drain();
        if let Some(replica) = replica {
            let is_asked_by_others = replica.lead() == Lead::Here && replica.status().members.len() > 1;
            replica.hand_over().await;
            if is_asked_by_others {
                sleep(HEARD_WITHIN).await;
            }
        }
        self.close().await;
        if let Some(replica) = replica
            && timeout(STOP_WITHIN, replica.stop()).await.is_err()
        {
            warn!("the replica didn't stop within {} s: left as it is", STOP_WITHIN.as_secs());
            return;
        }
        info!("stopped");
    }

    /// Lets out the answers that are under way; the door bounds this itself.
    async fn close(&mut self) {
        self.stop.cancel();
        if let Some(served) = self.served.take() {
            drop(served.await);
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
