//! One bench from connecting to its report.
//!
//! Owns: the phases and their order. Never: what a client does in its turn.

use crate::book::{Book, Lately};
use crate::caller::{Caller, Common, Failed, hex};
use crate::plan::{InvalidPlan, Pace, Plan, Workload};
use crate::player::{AcquireRelease, HandOff, Hot, Mix, Player, Reads, play};
use crate::progress::{Phase, Progress};
use crate::report::{EndedBy, Report};
use crate::stage::Stage;
use futures::future::{join_all, try_join_all};
use kunci_client::{BootClock, Client, Clock as _, Error, Moment, SystemRandomness};
use kunci_types::Owner;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval_at, Instant};
use tokio_util::sync::CancellationToken;

/// What a bench is told by, each second.
type Tell<'a> = &'a mut (dyn FnMut(&Progress) + Send);

const EVERY_SECOND: Duration = Duration::from_secs(1);

/// A bench that is connected and has done nothing yet.
#[derive(Debug)]
pub struct Bench {
    plan: Plan,
    endpoints: Vec<String>,
    clients: Vec<Client>,
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
    Connect(#[source] Error),
    /// The locks that the workload needs couldn't be had.
    #[error("prepare: {0}")]
    Prepare(String),
    /// The system gives no random bits, or something in this program is wrong.
    #[error("begin: {0}")]
    Begin(String),
}

impl Bench {
    /// Connects to the native doors of a cluster, each as `host:port`. `stop` ends the bench early, at any time.
    ///
    /// # Errors
    /// When the plan can't work, or no server answers.
    pub async fn connect(
        plan: Plan,
        endpoints: &[String],
        stop: CancellationToken,
    ) -> Result<Self, BenchError> {
        plan.check()?;
        let name = hex::<4>(&SystemRandomness).map_err(|error| BenchError::Begin(error.to_string()))?;
        let owner = format!("bench-{name}");
        let connecting = (0..plan.connections)
            .map(|_| Client::builder().owner(owner.as_str()).connect(endpoints.iter().map(String::as_str)));
        let clients = try_join_all(connecting).await.map_err(BenchError::Connect)?;
        let common = Arc::new(Common {
            clock: Arc::new(BootClock),
            randomness: Arc::new(SystemRandomness),
            owner: Owner::parse(&owner).map_err(|error| BenchError::Begin(error.to_string()))?,
            prefix: format!("bench/{name}/"),
            ttl: plan.ttl,
            stop,
        });
        Ok(Self { plan, endpoints: endpoints.to_vec(), clients, common })
    }

    /// What it is about to do to which cluster, in one line.
    pub fn announcement(&self) -> String {
        let Plan { workload, clients, warm_up, duration, .. } = self.plan;
        let what = match workload {
            Workload::AcquireRelease => "acquire and release a resource each".to_owned(),
            Workload::Mix { held } => format!("hold {held} locks, acquire, renew and release"),
            Workload::HandOff => "hand one lock on".to_owned(),
            Workload::Reads => "ask for the status of locks that they hold".to_owned(),
        };
        let pace = match self.pace() {
            ("open", Some(rate)) => format!("{rate} times a second"),
            _ => "as fast as it answers".to_owned(),
        };
        let seconds = (warm_up + duration).as_secs_f64();
        let cluster = self.cluster().map(|id| format!("cluster {id} ")).unwrap_or_default();
        format!(
            "load on {cluster}at {}: {clients} clients {what}, {pace}, for {seconds:.1} s; only under {}",
            self.endpoints.join(", "),
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
                let players = clients.map(|number| Mix::new(self.caller(number), number, share(number) as usize));
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
        let client = self.clients[number as usize % self.clients.len()].clone();
        Caller::new(client, self.common.clone())
    }

    fn cluster(&self) -> Option<String> {
        self.clients.first().and_then(Client::cluster)
    }

    fn pace(&self) -> (&'static str, Option<u32>) {
        match self.plan.pace {
            Pace::Closed => ("closed", None),
            Pace::Open { per_second } => ("open", Some(per_second.get())),
        }
    }

    async fn phases<P: Player>(&self, players: Vec<P>, tell: Tell<'_>) -> Result<Report, BenchError> {
        let clock = self.common.clock.clone();
        let mut tasks = JoinSet::new();
        for mut player in players {
            tasks.spawn(async move {
                let prepared = player.prepare().await;
                (player, prepared)
            });
        }
        let (players, prepared) = self.all(tasks, Phase::Preparing, tell).await;
        if let Some(failed) = prepared.into_iter().find_map(Result::err) {
            self.give_back(players, tell).await;
            return Err(BenchError::Prepare(failed.detail));
        }
        let stage = Stage::begin(clock, &self.plan, self.common.stop.clone());
        let book = Book::new(stage.clone()).map_err(|error| BenchError::Begin(error.to_string()))?;
        let players = self.measure(players, &stage, &Arc::new(book), tell).await;
        todo!()
    }
}
