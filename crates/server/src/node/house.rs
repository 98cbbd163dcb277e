//! What clients come to, from the first answer to the last.
//!
//! Owns: the front doors while a node lives, and the order in which it leaves. Never: a request.

use super::Ended;
use super::ground::{Listeners, StopSignals};
use super::signals;
use crate::audit::Audit;
use crate::http::{HttpDoor, HttpLimits};
use crate::native::{NativeDoor, NativeLimits};
use crate::service::Service;
use crate::streams::Listener;
use kunci_process::{sleep, timeout};
use kunci_replica::{Lead, Member, Replica};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// How long a stop of the replica may take before the process ends without it; its disk is as after a crash then.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// How long a stop waits for the last lines of the audit log.
const AUDITED_WITHIN: Duration = Duration::from_secs(2);

/// After a hand-over, how long a node goes on as before: the other members hear of the new leader with its heartbeats,
/// and until then they pass calls on to this node, which sends them back.
const HEARD_WITHIN: Duration = Duration::from_millis(250);

/// The doors. A clone is another handle to the same.
#[derive(Clone)]
pub(super) struct FrontDoors {
    pub(super) http: HttpDoor,
    pub(super) native: NativeDoor,
    /// What the replica is watched by, if it is.
    pub(super) audit: Option<Audit>,
}

impl FrontDoors {
    /// From now on they serve the cluster that the replica is a member of.
    pub(super) fn enter(&self, replica: &Replica) {
        let service = Service::audited(replica.clone(), self.audit.clone());
        self.http.enter(service.clone());
        self.native.enter(service);
    }
}

/// The doors and whoever serves at them.
pub(super) struct House {
    pub(super) doors: FrontDoors,
    stop: CancellationToken,
    served: JoinSet<&'static str>,
}

impl House {
    pub(super) fn new(
        http_limits: HttpLimits,
        native_limits: NativeLimits,
        me: &Member,
        audit: Option<Audit>,
    ) -> Self {
        let doors = FrontDoors {
            http: HttpDoor::new(http_limits, me.clone()),
            native: NativeDoor::new(native_limits, me.clone()),
            audit,
        };
        doors.http.shows(&doors.native);
        Self { doors, stop: CancellationToken::new(), served: JoinSet::new() }
    }

    pub(super) fn serve(&mut self, listeners: Listeners<impl Listener>) {
        let Listeners { http, native } = listeners;
        let FrontDoors { http: http_door, native: native_door, .. } = self.doors.clone();
        let [http_stop, native_stop] = [self.stop.clone(), self.stop.clone()];
        kunci_process::spawn_into(&mut self.served, async move {
            http_door.serve(http, http_stop).await;
            "HTTP"
        });
        kunci_process::spawn_into(&mut self.served, async move {
            native_door.serve(native, native_stop).await;
            "the native protocol"
        });
    }

    /// Where nobody is answered any more, though nobody wanted that.
    pub(super) async fn ended(&mut self) -> String {
        match self.served.join_next().await {
            Some(ended) => format!("{ended:?}"),
            None => std::future::pending().await,
        }
    }

    /// Ends by a signal, in good order unless there is a second one.
    pub(super) async fn stop(
        mut self,
        replica: Option<&Replica>,
        signal: i32,
        signals: &mut impl StopSignals,
    ) -> Ended {
        info!("{} received: stopping; a second signal stops at once", signals::name(signal));
        match signals.or_else(self.leave(replica)).await {
            Ok(()) => Ended::Stopped,
            Err(signal) => Ended::AtOnce(signal),
        }
    }

    /// Readiness drops first, leadership moves, every open request gets its answer (from the new leader if need be), and
    /// then the replica ends. Each step is bounded.
    async fn leave(&mut self, replica: Option<&Replica>) {
        self.doors.http.drain();
        if let Some(replica) = replica {
            let is_asked_by_others = replica.lead() == Lead::Here && replica.status().members.len() > 1;
            replica.hand_over().await;
            if is_asked_by_others {
                sleep(HEARD_WITHIN).await;
            }
        }
        self.close().await;
        let Some(replica) = replica else { return info!("stopped") };
        let is_stopped = timeout(STOP_WITHIN, replica.stop()).await.is_ok();
        if let Some(audit) = &self.doors.audit {
            // What isn't written by then is in the log, and is written after the next start.
            audit.stop(AUDITED_WITHIN).await;
        }
        if !is_stopped {
            warn!("the replica didn't stop within {} s: left as it is", STOP_WITHIN.as_secs());
            return;
        }
        info!("stopped");
    }

    /// Lets out the answers that are under way; each door bounds this itself.
    pub(super) async fn close(&mut self) {
        self.stop.cancel();
        while self.served.join_next().await.is_some() {}
    }
}
