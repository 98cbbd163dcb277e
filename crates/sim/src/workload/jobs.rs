//! What one client of the HTTP doors does, one job after another.
//!
//! Owns: the mixture: holds with renewals alone and in batches, waits, tries, cancels, lost answers, retries with the same
//! request id on another node, late proofs, and reads. Never: an opinion about an answer; those are in `invariants`.

use super::caller::Caller;
use super::policy;
use crate::randomness::Seeded;
use crate::world::World;
use kunci_oracle::{History, Op, Told};
use std::time::Duration;

/// How often a call is repeated before its outcome stays unknown: about 15 s of a cluster without a leader.
const TRIES: u32 = 40;
/// Of a hundred jobs so many have an answer lost on purpose.
const LOST_ANSWERS: u64 = 10;
/// Of a hundred requests so many have the owner that others of their client have too.
const SHARED_OWNERS: u64 = 15;
/// Before a hundred jobs of one client the limits change so often, where they do at all.
const POLICY_CHANGES: u64 = 4;
/// Resources change after this time, so that the history of each stays short.
const EPOCH: Duration = Duration::from_secs(15);
/// Contended resources at a time.
const HOT: u64 = 3;

/// One client and its chance.
pub(super) struct Worker {
    world: World,
    number: u64,
    life: u64,
    /// How many requests it has made.
    requests: u64,
    caller: Caller,
    random: Seeded,
    /// The limits change in some worlds.
    changes_policy: bool,
}

/// A lease that this client was told of.
struct Mine {
    resource: String,
    lease: String,
    ttl_ms: u64,
}

impl Worker {
    pub(super) fn new(
        world: &World,
        number: u64,
        life: u64,
        plug: crate::network::Plug,
        history: &History,
    ) -> Self {
        let random = world.random(&format!("client {number}.{life}"));
        let changes_policy = world.random("policies").below(3) > 0;
        let caller = Caller::new(world, number, plug, history);
        Self { world: world.clone(), number, life, requests: 0, caller, random, changes_policy }
    }

    fn percent(&mut self, of_hundred: u64) -> bool {
        self.random.below(100) < of_hundred
    }

    async fn pause(&mut self, from_ms: u64, to_ms: u64) {
        let ms = self.random.between(from_ms, to_ms);
        kunci_process::sleep(Duration::from_millis(ms)).await;
    }

    fn hot(&mut self) -> String {
        let epoch = self.world.began().elapsed().as_secs() / EPOCH.as_secs();
        format!("hot/{epoch}-{}", self.random.below(HOT))
    }

    async fn settle(&mut self, op: &Op, tries: u32) -> Option<Told> {
        self.caller.settle(op, tries).await.map(|(told, _)| told)
    }

    /// One job, and the time until the next.
    pub(super) async fn job(&mut self) {
        if self.percent(25) {
            self.caller.turn();
        }
        if self.changes_policy && self.percent(POLICY_CHANGES) {
            policy::change(&mut self.caller, &mut self.random).await;
        }
        match self.random.below(100) {
            0..22 => self.look().await,
            22..32 => self.give_up_waiting().await,
            32..42 => self.hold_many().await,
            42..48 => self.hold_alone().await,
            _ => self.hold().await,
        }
        self.pause(0, 550).await;
    }

    /// The events of a cluster name owners and never requests. Most requests have an owner of their own, so that it is
    /// known whose event it is; with the others an owner asks again while it still waits or holds.
    fn owner(&mut self) -> String {
        self.requests += 1;
        if self.percent(SHARED_OWNERS) {
            format!("client-{}", self.number)
        } else {
            format!("client-{}.{}.{}", self.number, self.life, self.requests)
        }
    }

    fn acquire(&mut self, resource: String, wait_ms: u64) -> Op {
        Op::Acquire {
            resource,
            owner: self.owner(),
            request: format!("{:016x}{:016x}", self.random.bits(), self.random.bits()),
            ttl_ms: self.random.between(1_000, 3_000),
            wait_ms,
            delay_ms: if self.percent(15) { self.random.between(100, 600) } else { 0 },
        }
    }

    async fn hold(&mut self) {
        let wait_ms = if self.percent(70) { self.random.between(200, 6_000) } else { 0 };
        let resource = self.hot();
        let op = self.acquire(resource, wait_ms);
        self.hold_as(&op).await;
    }

    /// On a resource that nobody else asks for.
    async fn hold_alone(&mut self) {
        let resource = format!("own/{}-{}", self.number, self.random.below(3));
        let op = self.acquire(resource, 0);
        self.hold_as(&op).await;
    }

    async fn hold_as(&mut self, op: &Op) {
        let Op::Acquire { resource, ttl_ms, .. } = op else { return };
        if self.percent(LOST_ANSWERS) {
            // Sent, perhaps taken, and never heard of: the retry finds it out.
            let within = Duration::from_millis(self.random.between(1, 12));
            drop(self.caller.once_within(op, within).await);
        }
        let Some(Told::Granted { lease, .. }) = self.settle(op, TRIES).await else { return };
        let mine = Mine { resource: resource.clone(), lease, ttl_ms: *ttl_ms };
        if self.percent(10) {
            // Everybody may ask twice; the answer is the same lease.
            self.caller.turn();
            drop(self.settle(op, 3).await);
        }
        match self.random.below(100) {
            0..12 => self.forget(&mine).await,
            12..28 => self.keep(&mine).await,
            _ => {
                self.pause(0, 250).await;
                self.release(&mine).await;
            }
        }
        if self.percent(10) {
            // Long after its end the same request is asked for again.
            self.pause(0, 2_000).await;
            self.caller.turn();
            drop(self.settle(op, 3).await);
        }
    }

    /// Holds for longer than the TTL.
    async fn keep(&mut self, mine: &Mine) {
        for _ in 0..self.random.between(1, 6) {
            kunci_process::sleep(Duration::from_millis(mine.ttl_ms / 3)).await;
            let renew = Op::Renew { resource: mine.resource.clone(), lease: mine.lease.clone() };
            // Several nodes can be asked before the lease is over.
            let within = Duration::from_millis(mine.ttl_ms / 4);
            match self.caller.settle_within(&renew, 6, within).await {
                Some((Told::Renewed { .. }, _)) | None => {}
                Some(_) => return,
            }
        }
        self.release(mine).await;
    }

    /// Lets the lease lapse; sometimes comes back too late, as a paused client does.
    async fn forget(&mut self, mine: &Mine) {
        if self.percent(50) {
            return;
        }
        self.pause(mine.ttl_ms + 200, mine.ttl_ms + 1_500).await;
        let renew = Op::Renew { resource: mine.resource.clone(), lease: mine.lease.clone() };
        drop(self.settle(&renew, 3).await);
        self.release(mine).await;
    }

    async fn release(&mut self, mine: &Mine) {
        let release = Op::Release { resource: mine.resource.clone(), lease: mine.lease.clone() };
        if self.percent(LOST_ANSWERS) {
            let within = Duration::from_millis(self.random.between(1, 10));
            drop(self.caller.once_within(&release, within).await);
            self.caller.turn();
        }
        drop(self.settle(&release, TRIES).await);
    }

    /// Holds several resources of its own, and renews them with one call.
    async fn hold_many(&mut self) {
        let mut mine = Vec::new();
        for place in 0..self.random.between(2, 4) {
            let op = self.acquire(format!("many/{}-{place}", self.number), 0);
            let Op::Acquire { resource, ttl_ms, .. } = &op else { return };
            if let Some(Told::Granted { lease, .. }) = self.settle(&op, 3).await {
                mine.push(Mine { resource: resource.clone(), lease, ttl_ms: *ttl_ms });
            }
        }
        let leases: Vec<_> = mine.iter().map(|mine| (mine.resource.clone(), mine.lease.clone())).collect();
        if leases.is_empty() {
            return;
        }
        for _ in 0..self.random.between(1, 3) {
            self.pause(200, 900).await;
            drop(self.caller.renew_all(&leases).await);
        }
        for mine in &mine {
            self.release(mine).await;
        }
    }

    /// Queues, hangs up, and cancels; a grant that came first is given back.
    async fn give_up_waiting(&mut self) {
        // Some would have waited for long.
        let most_ms = if self.percent(60) { 90_000 } else { 6_000 };
        let (resource, wait_ms) = (self.hot(), self.random.between(500, most_ms));
        let op = self.acquire(resource, wait_ms);
        let Op::Acquire { resource, owner, request, ttl_ms, .. } = &op else { return };
        let within = Duration::from_millis(self.random.between(1, 1_500));
        drop(self.caller.once_within(&op, within).await);
        self.caller.turn();
        if self.percent(40) {
            // It goes without a word.
            return;
        }
        let cancel =
            Op::Cancel { resource: resource.clone(), owner: owner.clone(), request: request.clone() };
        if let Some(Told::Granted { lease, .. }) = self.settle(&cancel, TRIES).await {
            self.release(&Mine { resource: resource.clone(), lease, ttl_ms: *ttl_ms }).await;
        }
        if self.percent(40) {
            // After the cancel no grant may follow.
            drop(self.settle(&op, 3).await);
        }
    }

    async fn look(&mut self) {
        let resource = self.hot();
        let op = match self.random.below(10) {
            0..6 => Op::Status { resource },
            6..9 => Op::Queue { resource },
            _ => Op::List { prefix: "hot/".to_owned() },
        };
        drop(self.settle(&op, 5).await);
    }
}
