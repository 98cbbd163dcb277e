//! One bench from connecting to its report.
//!
//! Owns: the phases and their order. Never: what a client does in its turn.

use crate::caller::{Caller, Common, Failed, hex};
use crate::door::{Door, Http};
use crate::phases::{Phases, Played, Tell};
use crate::plan::{InvalidPlan, Pace, Plan, Workload};
use crate::player::{AcquireRelease, HandOff, Hot, Mix, Player, Reads};
use crate::progress::Progress;
use crate::report::{EndedBy, Report};
use futures::future::{join_all, try_join_all};
use kunci_client::{BootClock, Client, SystemRandomness};
use kunci_types::Owner;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Which cluster is loaded, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Native doors, each as `host:port`.
    Native(Vec<String>),
    /// The HTTP of one node, as `http://host:port`. Each client has a connection of its own.
    Http(String),
}

impl Target {
    /// The addresses.
    pub fn addresses(&self) -> &[String] {
        match self {
            Self::Native(endpoints) => endpoints,
            Self::Http(url) => std::slice::from_ref(url),
        }
    }
}

/// A bench that is connected and has done nothing yet.
#[derive(Debug)]
pub struct Bench {
    plan: Plan,
    target: Target,
    doors: Vec<Door>,
    common: Arc<Common>,
}

/// Why a bench has no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The plan can't work.
    #[error(transparent)]
    Plan(#[from] InvalidPlan),
    /// No server answers.
    #[error("connect: {0}")]
    Connect(String),
    /// The locks that the workload needs couldn't be had.
    #[error("prepare: {0}")]
    Prepare(String),
    /// The system gives no random bits, or something in this program is wrong.
    #[error("begin: {0}")]
    Begin(String),
}

impl Bench {
    /// Connects to a cluster. `stop` ends the bench early, at any time.
    ///
    /// # Errors
    /// When the plan can't work, or no server answers.
    pub async fn connect(plan: Plan, target: Target, stop: CancellationToken) -> Result<Self, BenchError> {
        plan.check()?;
        let name = hex::<4>(&SystemRandomness).map_err(|error| BenchError::Begin(error.to_string()))?;
        let owner = format!("bench-{name}");
        let doors = match &target {
            Target::Native(endpoints) => native_doors(&plan, &owner, endpoints).await?,
            Target::Http(url) => {
                let http = Http::connect(url).await.map_err(|failed| BenchError::Connect(failed.detail))?;
                vec![Door::Http(http)]
            }
        };
        let common = Arc::new(Common {
            clock: Arc::new(BootClock),
            randomness: Arc::new(SystemRandomness),
            owner: Owner::parse(&owner).map_err(|error| BenchError::Begin(error.to_string()))?,
            prefix: format!("bench/{name}/"),
            ttl: plan.ttl,
            stop,
        });
        Ok(Self { plan, target, doors, common })
    }

    /// What it is about to do to which cluster, in one line.
    pub fn announcement(&self) -> String {
        let Plan { workload, pace, clients, warm_up, duration, .. } = self.plan;
        let what = match workload {
            Workload::AcquireRelease => "acquire and release a resource each".to_owned(),
            Workload::Mix { held } => format!("hold {held} locks, acquire, renew and release"),
            Workload::HandOff => "hand one lock on".to_owned(),
            Workload::Reads => "ask for the status of locks that they hold".to_owned(),
        };
        let pace = match pace {
            Pace::Open { per_second } => format!("{per_second} times a second"),
            Pace::Closed => "as fast as it answers".to_owned(),
        };
        let seconds = (warm_up + duration).as_secs_f64();
        let cluster = self.cluster().map(|id| format!("cluster {id} ")).unwrap_or_default();
        format!(
            "load on {cluster}at {}: {clients} clients {what}, {pace}, for {seconds:.1} s; only under {}",
            self.target.addresses().join(", "),
            self.common.prefix
        )
    }

    /// Runs it, and gives back whatever it holds. `tell` hears once a second how it goes.
    ///
    /// # Errors
    /// When the locks can't be had that the workload needs. Whatever goes wrong later is in the report.
    pub async fn run(self, mut tell: impl FnMut(&Progress) + Send) -> Result<Report, BenchError> {
        let clients = 0..self.plan.clients;
        let begin = |failed: Failed| BenchError::Begin(failed.detail);
        match self.plan.workload {
            Workload::AcquireRelease => {
                let players = clients.map(|number| AcquireRelease::new(self.caller(number), number));
                let players = players.collect::<Result<_, _>>().map_err(begin)?;
                self.phases(players, &mut tell).await
            }
            Workload::Mix { held } => {
                let share = |number| held / self.plan.clients + u32::from(number < held % self.plan.clients);
                let players =
                    clients.map(|number| Mix::new(self.caller(number), number, share(number) as usize));
                self.phases(players.collect(), &mut tell).await
            }
            Workload::HandOff => {
                let hot = Hot::new(&self.caller(0)).map_err(begin)?;
                let players = clients.map(|number| HandOff::new(self.caller(number), hot.clone()));
                self.phases(players.collect(), &mut tell).await
            }
            Workload::Reads => {
                let caller = self.caller(0);
                let keys = clients.clone().map(|number| caller.key(number));
                let keys: Arc<[_]> = keys.collect::<Result<_, _>>().map_err(begin)?;
                let players =
                    clients.map(|number| Reads::new(self.caller(number), keys.clone(), number as usize));
                self.phases(players.collect(), &mut tell).await
            }
        }
    }

    fn caller(&self, number: u32) -> Caller {
        let door = self.doors[number as usize % self.doors.len()].clone();
        Caller::new(door, self.common.clone())
    }

    fn cluster(&self) -> Option<String> {
        self.doors.first().and_then(Door::cluster)
    }

    async fn phases<P: Player>(&self, players: Vec<P>, tell: Tell<'_>) -> Result<Report, BenchError> {
        let mut phases = Phases { plan: self.plan, common: self.common.clone(), tell };
        let played = phases.run(players).await;
        // Whatever still goes on in the background ends here.
        join_all(self.doors.iter().map(Door::close)).await;
        played.map(|played| self.report(&played))
    }

    fn report(&self, played: &Played) -> Report {
        let Played { stage, book, left_behind } = played;
        let Plan { workload, pace, clients, connections, ttl, warm_up, .. } = self.plan;
        let (pace, rate) = match pace {
            Pace::Closed => ("closed", None),
            Pace::Open { per_second } => ("open", Some(per_second.get())),
        };
        let seconds = in_seconds(stage.counted());
        let overload = stage.overload();
        let report = Report {
            workload: workload.name(),
            pace,
            rate,
            clients,
            connections: match self.target {
                Target::Native(_) => connections,
                Target::Http(_) => clients,
            },
            held: if let Workload::Mix { held } = workload { Some(held) } else { None },
            ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
            cluster: self.cluster(),
            endpoints: self.target.addresses().to_vec(),
            prefix: self.common.prefix.clone(),
            warm_up_seconds: in_seconds(warm_up),
            seconds,
            ended_by: if stage.is_stopped_early() { EndedBy::Stop } else { EndedBy::Duration },
            late: overload.map(|overload| overload.late),
            never_begun: overload.map(|overload| overload.never_begun),
            left_behind: *left_behind,
            operations: 0,
            per_second: 0.0,
            errors: BTreeMap::new(),
            kinds: Vec::new(),
        };
        report.of_kinds(book.figures(seconds))
    }
}

async fn native_doors(plan: &Plan, owner: &str, endpoints: &[String]) -> Result<Vec<Door>, BenchError> {
    let connecting = (0..plan.connections)
        .map(|_| Client::builder().owner(owner).connect(endpoints.iter().map(String::as_str)));
    let clients = try_join_all(connecting).await.map_err(|error| BenchError::Connect(error.to_string()))?;
    Ok(clients.into_iter().map(Door::Native).collect())
}

/// To a thousandth.
fn in_seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000.0).round() / 1_000.0
}
