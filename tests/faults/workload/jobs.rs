//! What one client of the workload does, one job after another.

use super::Plan;
use crate::client::Caller;
use kunci_oracle::Random;
use kunci_oracle::{History, Op, Told};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::sleep;

/// How often a call is repeated before its outcome stays unknown: about 15 s of a cluster without a leader.
const TRIES: u32 = 90;

/// What clients with retries noticed of all faults.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) jobs: u64,
    /// Calls that came to nothing although they were repeated again and again.
    pub(crate) unsettled: u64,
    /// Leases that were lost although they were renewed in time.
    pub(crate) lost: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.jobs += other.jobs;
        self.unsettled += other.unsettled;
        self.lost += other.lost;
    }
}

/// One client and its chance.
pub(super) struct Worker {
    name: u64,
    caller: Caller,
    random: Random,
    lost_answers: u64,
    tally: Tally,
}

/// A lease that this client was told of.
struct Mine {
    resource: String,
    lease: String,
    ttl_ms: u64,
}

impl Worker {
    pub(super) fn new(name: u64, plan: &Plan, doors: &[SocketAddr], history: &History) -> Self {
        Self {
            name,
            caller: Caller::new(name, doors, history),
            random: Random::new(plan.seed, name),
            lost_answers: plan.lost_answers,
            tally: Tally::default(),
        }
    }

    /// What it noticed so far.
    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// Asks until it is decided.
    async fn settle(&mut self, op: &Op, tries: u32) -> Option<Told> {
        let settled = self.caller.settle(op, tries).await;
        if settled.is_none() && tries >= TRIES {
            self.tally.unsettled += 1;
        }
        settled.map(|(told, _)| told)
    }

    /// One job on a resource.
    pub(super) async fn job(&mut self, resource: &str) {
        self.tally.jobs += 1;
        if self.random.percent(30) {
            self.caller.turn();
        }
        match self.random.between(0, 99) {
            0..20 => self.look(resource).await,
            20..28 => self.give_up_waiting(resource).await,
            _ => self.hold(resource).await,
        }
    }

    fn acquire(&mut self, resource: &str) -> Op {
        let wait_ms = if self.random.percent(65) { self.random.between(200, 3_000) } else { 0 };
        Op::Acquire {
            resource: resource.to_owned(),
            owner: format!("client-{}", self.name),
            request: self.random.request_id(),
            ttl_ms: self.random.between(1_000, 2_500),
            wait_ms,
            delay_ms: if self.random.percent(15) { self.random.between(100, 600) } else { 0 },
        }
    }

    async fn hold(&mut self, resource: &str) {
        let op = self.acquire(resource);
        let Op::Acquire { ttl_ms, .. } = op else { return };
        if self.random.percent(self.lost_answers) {
            // Sent, perhaps taken, and never heard of: the retry finds it out.
            let within = Duration::from_micros(self.random.between(50, 6_000));
            drop(self.caller.once_within(&op, within).await);
        }
        let Some(Told::Granted { lease, .. }) = self.settle(&op, TRIES).await else { return };
        let mine = Mine { resource: resource.to_owned(), lease, ttl_ms };
        if self.random.percent(10) {
            // Everybody may ask twice; the answer is the same lease.
            drop(self.settle(&op, 3).await);
        }
        match self.random.between(0, 99) {
            0..4 => self.forget(&mine).await,
            4..20 => self.keep(&mine).await,
            _ => {
                let ms = self.random.between(0, 60);
                sleep(Duration::from_millis(ms)).await;
                self.release(&mine).await;
            }
        }
    }

    /// Holds for longer than the TTL.
    async fn keep(&mut self, mine: &Mine) {
        for _ in 0..self.random.between(1, 4) {
            sleep(Duration::from_millis(mine.ttl_ms / 3)).await;
            let renew = Op::Renew { resource: mine.resource.clone(), lease: mine.lease.clone() };
            // Three nodes can be asked before the lease is over.
            let within = Duration::from_millis(mine.ttl_ms / 5);
            match self.caller.settle_within(&renew, 20, within).await {
                Some((Told::Renewed { .. }, _)) | None => {}
                Some(_) => {
                    self.tally.lost += 1;
                    return;
                }
            }
        }
        self.release(mine).await;
    }

    /// Lets the lease lapse; sometimes comes back too late, as a paused client does.
    async fn forget(&mut self, mine: &Mine) {
        if self.random.percent(50) {
            return;
        }
        sleep(Duration::from_millis(mine.ttl_ms + self.random.between(200, 800))).await;
        let renew = Op::Renew { resource: mine.resource.clone(), lease: mine.lease.clone() };
        drop(self.settle(&renew, 3).await);
        self.release(mine).await;
    }

    async fn release(&mut self, mine: &Mine) {
        let release = Op::Release { resource: mine.resource.clone(), lease: mine.lease.clone() };
        if self.random.percent(self.lost_answers) {
            let within = Duration::from_micros(self.random.between(50, 4_000));
            drop(self.caller.once_within(&release, within).await);
        }
        drop(self.settle(&release, TRIES).await);
    }

    /// Queues, hangs up, and cancels; a grant that came first is given back.
    async fn give_up_waiting(&mut self, resource: &str) {
        let op = self.acquire(resource);
        let Op::Acquire { owner, request, ttl_ms, .. } = &op else { return };
        let within = Duration::from_millis(self.random.between(1, 400));
        drop(self.caller.once_within(&op, within).await);
        let (owner, request) = (owner.clone(), request.clone());
        let cancel = Op::Cancel { resource: resource.to_owned(), owner, request };
        if let Some(Told::Granted { lease, .. }) = self.settle(&cancel, TRIES).await {
            self.release(&Mine { resource: resource.to_owned(), lease, ttl_ms: *ttl_ms }).await;
        }
        if self.random.percent(30) {
            // After the cancel no grant may follow.
            drop(self.settle(&op, 3).await);
        }
    }

    async fn look(&mut self, resource: &str) {
        let resource = resource.to_owned();
        let op = match self.random.between(0, 9) {
            0..6 => Op::Status { resource },
            6..9 => Op::Queue { resource },
            _ => Op::List { prefix: "work/".to_owned() },
        };
        drop(self.settle(&op, 5).await);
    }
}
