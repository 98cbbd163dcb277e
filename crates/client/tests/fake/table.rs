//! The locks of the fake: just enough of the contract for a client to be right or wrong about.

use super::World;
use super::node::refused;
use kunci_api::native::{Acquire, Answer, Grant, Held, Outcome, Request, Status, Subject, Tag, WaitFor};
use kunci_api::{Proof, lease_id_text};
use kunci_types::{LeaseId, ResourceName};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Whom to answer.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(super) answers: mpsc::UnboundedSender<Answer>,
    pub(super) subject: Subject,
    pub(super) tag: Option<Tag>,
}

impl Reply {
    pub(super) fn to_nobody() -> Self {
        let subject = Subject { op: kunci_api::native::Op::Ping, key: None };
        Self { answers: mpsc::unbounded_channel().0, subject, tag: None }
    }
}

struct Lease {
    owner: String,
    request_id: String,
    lease_id: LeaseId,
    token: u64,
    ttl: Duration,
    ends_at: Instant,
}

struct Waiter {
    acquire: Acquire,
    request_id: String,
    until: Option<Instant>,
    reply: Reply,
}

#[derive(Default)]
pub(crate) struct Table {
    held: BTreeMap<String, Lease>,
    queues: BTreeMap<String, VecDeque<Waiter>>,
    /// How requests ended, by id.
    ended: BTreeMap<String, &'static str>,
    /// How leases ended, by id.
    leases: BTreeMap<String, &'static str>,
    tokens: u64,
    /// What every renewal answers instead of the TTL, and whether it is final.
    pub(crate) final_after: Option<Duration>,
    /// The policy's longest wait.
    pub(crate) wait_max: Option<Duration>,
}

impl Table {
    pub(crate) fn holder(&self, resource: &str) -> Option<String> {
        self.held.get(resource).map(|lease| lease.owner.clone())
    }

    pub(crate) fn waiters(&self, resource: &str) -> Vec<String> {
        let queue = self.queues.get(resource);
        queue.into_iter().flatten().map(|waiter| waiter.request_id.clone()).collect()
    }

    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Time left of the lease on a resource.
    pub(crate) fn remaining(&self, resource: &str) -> Option<Duration> {
        self.held.get(resource).map(|lease| lease.ends_at - Instant::now())
    }

    /// Everything is lost, as when a cluster is rebuilt.
    pub(crate) fn wipe(&mut self) {
        let tokens = self.tokens;
        *self = Self { tokens, ..Self::default() };
    }

    pub(crate) fn take(world: &Arc<Mutex<World>>, resource: &str, owner: &str, ttl: Duration) {
        let mut locked = world.lock().unwrap();
        locked.table.grant(resource, owner, "another's", ttl);
        drop(locked);
        Self::watch_time(world, resource.to_owned());
    }

    pub(crate) fn end(&mut self, resource: &str, how: &'static str) {
        if let Some(lease) = self.held.remove(resource) {
            self.ended.insert(lease.request_id, how);
            self.leases.insert(lease_id_text(&lease.lease_id), how);
        }
        self.serve_queue(resource);
    }

    /// Applies a request and answers it, now or later.
    pub(super) fn handle(world: &Arc<Mutex<World>>, request: Request, reply: Reply) {
        let mut locked = world.lock().unwrap();
        let table = &mut locked.table;
        match request {
            Request::Acquire(acquire) => {
                let resource = acquire.key.to_string();
                table.acquire(acquire, reply);
                drop(locked);
                Self::watch_time(world, resource);
            }
            Request::Renew { key, lease_id, ttl } => reply.send(table.renew(&key, lease_id, ttl.map(ms))),
            Request::Release { key, proof } => reply.send(table.release(&key, &proof)),
            Request::Cancel { key, request_id, .. } => reply.send(table.cancel(&key, request_id.as_str())),
            Request::Status { key } => reply.send(table.status(&key)),
            Request::Hello(_) | Request::Ping => {}
        }
    }

    /// Ends the lease on a resource and the waits for it when their time is over.
    fn watch_time(world: &Arc<Mutex<World>>, resource: String) {
        let world = world.clone();
        tokio::spawn(async move {
            loop {
                let next = world.lock().unwrap().table.time_passes(&resource);
                let Some(next) = next else { return };
                sleep_until(next).await;
            }
        });
    }

    /// Returns when to look again.
    fn time_passes(&mut self, resource: &str) -> Option<Instant> {
        let now = Instant::now();
        if self.held.get(resource).is_some_and(|lease| lease.ends_at <= now) {
            self.end(resource, "expired");
        }
        let queue = self.queues.entry(resource.to_owned()).or_default();
        let is_over = |waiter: &Waiter| waiter.until.is_some_and(|until| until <= now);
        while let Some(at) = queue.iter().position(is_over) {
            let waiter = queue.remove(at).unwrap();
            self.ended.insert(waiter.request_id.clone(), "timed_out");
            waiter.reply.send(Outcome::TimedOut { request_id: Some(waiter.request_id), repeated: false });
        }
        let waits = queue.iter().filter_map(|waiter| waiter.until);
        waits.chain(self.held.get(resource).map(|lease| lease.ends_at)).min()
    }

    fn grant(&mut self, resource: &str, owner: &str, request_id: &str, ttl: Duration) {
        self.tokens += 1;
        let mut bytes = [7; 16];
        bytes[..8].copy_from_slice(&self.tokens.to_be_bytes());
        let lease = Lease {
            owner: owner.to_owned(),
            request_id: request_id.to_owned(),
            lease_id: LeaseId::from_bytes(bytes),
            token: self.tokens,
            ttl,
            ends_at: Instant::now() + ttl,
        };
        self.held.insert(resource.to_owned(), lease);
    }

    fn granted(&self, resource: &str, repeated: bool) -> Option<Outcome> {
        let lease = self.held.get(resource)?;
        Some(Outcome::Granted(Grant {
            token: lease.token,
            lease: lease_id_text(&lease.lease_id),
            ttl_ms: in_ms(lease.ends_at - Instant::now()),
            request_id: lease.request_id.clone(),
            repeated,
        }))
    }

    fn acquire(&mut self, acquire: Acquire, reply: Reply) {
        let resource = acquire.key.to_string();
        let request_id = acquire.request_id.clone().unwrap().to_string();
        match self.ended.get(&request_id) {
            Some(&"timed_out") => {
                return reply.send(Outcome::TimedOut { request_id: Some(request_id), repeated: true });
            }
            Some(&"cancelled") => {
                return reply.send(Outcome::Cancelled { request_id: Some(request_id), repeated: true });
            }
            Some(how) => return reply.send(lease_ended("lease_ended", how)),
            None => {}
        }
        if self.held.get(&resource).is_some_and(|lease| lease.request_id == request_id) {
            return reply.send(self.granted(&resource, true).unwrap());
        }
        let queue = self.queues.entry(resource.clone()).or_default();
        if let Some(waiter) = queue.iter_mut().find(|waiter| waiter.request_id == request_id) {
            let older = std::mem::replace(&mut waiter.reply, reply);
            return older.send(refused("superseded"));
        }
        let is_free = !self.held.contains_key(&resource) && !queue.iter().any(Waiter::is_attached);
        if is_free {
            let owner = acquire.owner.clone().unwrap();
            self.grant(&resource, owner.as_str(), &request_id, ms(acquire.ttl));
            return reply.send(self.granted(&resource, false).unwrap());
        }
        let longest = self.wait_max.unwrap_or(Duration::from_secs(3_600));
        let wait = match acquire.wait {
            WaitFor::Once => {
                let held = self.held.get(&resource).unwrap();
                return reply.send(Outcome::Held(Held {
                    holder: held.owner.clone(),
                    token: held.token,
                    ttl_ms: in_ms(held.ends_at - Instant::now()),
                    queue: self.queues[&resource].len() as u64,
                    request_id: Some(request_id),
                }));
            }
            WaitFor::AsLongAsAllowed => longest,
            WaitFor::UpToMs(ms) if ms > in_ms(longest) => return reply.send(refused("out_of_policy")),
            WaitFor::UpToMs(ms) => Duration::from_millis(ms),
        };
        let until = Some(Instant::now() + wait);
        let waiter = Waiter { acquire, request_id, until, reply };
        self.queues.entry(resource).or_default().push_back(waiter);
    }

    fn serve_queue(&mut self, resource: &str) {
        let Some(queue) = self.queues.get_mut(resource) else { return };
        let Some(at) = queue.iter().position(Waiter::is_attached) else { return };
        let waiter = queue.remove(at).unwrap();
        let owner = waiter.acquire.owner.clone().unwrap();
        self.grant(resource, owner.as_str(), &waiter.request_id, ms(waiter.acquire.ttl));
        waiter.reply.send(self.granted(resource, false).unwrap());
    }

    fn renew(&mut self, key: &ResourceName, lease_id: LeaseId, ttl: Option<Duration>) -> Outcome {
        let (final_after, now) = (self.final_after, Instant::now());
        match self.held.get_mut(key.as_str()).filter(|lease| lease.lease_id == lease_id) {
            Some(lease) => {
                lease.ttl = ttl.unwrap_or(lease.ttl);
                lease.ends_at = now + final_after.unwrap_or(lease.ttl);
                Outcome::Renewed { ttl_ms: in_ms(lease.ends_at - now), is_final: final_after.is_some() }
            }
            None => self.ended(lease_id),
        }
    }

    fn release(&mut self, key: &ResourceName, proof: &Proof) -> Outcome {
        let Proof::LeaseId(lease_id) = proof else { panic!("the client proves by lease id") };
        if self.held.get(key.as_str()).is_some_and(|lease| lease.lease_id == *lease_id) {
            self.end(key.as_str(), "released");
            return Outcome::Released { already: false };
        }
        match self.ended(*lease_id) {
            Outcome::Error(refused) if refused.code == "released" => Outcome::Released { already: true },
            outcome => outcome,
        }
    }

    fn ended(&self, lease_id: LeaseId) -> Outcome {
        let how = self.leases.get(&lease_id_text(&lease_id)).copied();
        lease_ended(how.unwrap_or("unknown_lease"), "")
    }

    fn cancel(&mut self, key: &ResourceName, request_id: &str) -> Outcome {
        if self.held.get(key.as_str()).is_some_and(|lease| lease.request_id == request_id) {
            return self.granted(key.as_str(), true).unwrap();
        }
        let queue = self.queues.entry(key.to_string()).or_default();
        if let Some(at) = queue.iter().position(|waiter| waiter.request_id == request_id) {
            let waiter = queue.remove(at).unwrap();
            waiter
                .reply
                .send(Outcome::Cancelled { request_id: Some(request_id.to_owned()), repeated: false });
        }
        self.ended.entry(request_id.to_owned()).or_insert("cancelled");
        Outcome::Cancelled { request_id: Some(request_id.to_owned()), repeated: false }
    }

    fn status(&self, key: &ResourceName) -> Outcome {
        let queue = self.queues.get(key.as_str()).map_or(0, VecDeque::len) as u64;
        Outcome::Status(match self.held.get(key.as_str()) {
            None => Status { queue, ..Status::default() },
            Some(lease) => Status {
                held: true,
                holder: Some(lease.owner.clone()),
                token: Some(lease.token),
                ttl_ms: Some(in_ms(lease.ends_at - Instant::now())),
                queue,
                ..Status::default()
            },
        })
    }
}

impl Waiter {
    fn is_attached(&self) -> bool {
        !self.reply.answers.is_closed()
    }
}

fn lease_ended(code: &str, reason: &str) -> Outcome {
    let Outcome::Error(mut ended) = refused(code) else { panic!("a refusal") };
    ended.reason = (!reason.is_empty()).then(|| reason.to_owned());
    Outcome::Error(ended)
}

fn ms(ttl: kunci_types::Ttl) -> Duration {
    Duration::from_millis(ttl.as_ms())
}

fn in_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap()
}
