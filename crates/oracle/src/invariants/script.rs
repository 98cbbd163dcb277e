//! Histories written by hand, for the checks' own tests.
//!
//! Times are in milliseconds; each lease id is made from its token, and each request id from its owner and token.

use crate::history::{Answer, Call, Op, Outcome, Position};
use serde_json::{Value, json};

/// The TTL of every lease in a script, in ms.
pub(super) const TTL_MS: u64 = 1_000;

/// Calls in the order written.
#[derive(Default)]
pub(super) struct Script {
    calls: Vec<Call>,
    began_ms: u64,
    ended_ms: u64,
    /// The largest token so far: what reads give as the revision.
    revision: u64,
}

impl Script {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.calls.clone()
    }

    /// When the next call begins and ends.
    pub(super) fn at(&mut self, began_ms: u64, ended_ms: u64) -> &mut Self {
        (self.began_ms, self.ended_ms) = (began_ms, ended_ms);
        self
    }

    /// A first grant; its revision is its token.
    pub(super) fn grant(&mut self, resource: &str, owner: &str, token: u64, at: (u64, u32)) {
        self.add(acquire(resource, owner, token, 0), granted(token, token, false), at);
    }

    /// A first grant of a lease with a lock-delay, in ms.
    pub(super) fn grant_with_delay(
        &mut self,
        resource: &str,
        (owner, token): (&str, u64),
        delay: u64,
        at: (u64, u32),
    ) {
        let mut op = acquire(resource, owner, token, 0);
        if let Op::Acquire { delay_ms, .. } = &mut op {
            *delay_ms = delay;
        }
        self.add(op, granted(token, token, false), at);
    }

    /// A waiter's grant.
    pub(super) fn grant_after_wait(&mut self, resource: &str, owner: &str, token: u64, at: (u64, u32)) {
        self.add(acquire(resource, owner, token, 60_000), granted(token, token, false), at);
    }

    /// The answer to a repeated acquire of the request that got `of`.
    pub(super) fn grant_again(
        &mut self,
        resource: &str,
        owner: &str,
        (of, told): (u64, u64),
        at: (u64, u32),
    ) {
        self.add(acquire(resource, owner, of, 0), granted(told, told, true), at);
    }

    pub(super) fn renewed(&mut self, resource: &str, token: u64, revision: u64, at: (u64, u32)) {
        let renew = Op::Renew { resource: resource.to_owned(), lease: lease(token) };
        self.add(renew, (200, json!({ "renewed": true, "remainingMs": TTL_MS, "revision": revision })), at);
    }

    pub(super) fn released(&mut self, resource: &str, token: u64, revision: u64, at: (u64, u32)) {
        self.add(release(resource, token), (200, json!({ "released": true, "revision": revision })), at);
    }

    pub(super) fn released_already(&mut self, resource: &str, token: u64, revision: u64, at: (u64, u32)) {
        let body = json!({ "released": true, "already": true, "revision": revision });
        self.add(release(resource, token), (200, body), at);
    }

    /// A renewal that is refused.
    pub(super) fn renew_refused(
        &mut self,
        resource: &str,
        token: u64,
        (code, reason): (&str, &str),
        at: (u64, u32),
    ) {
        let renew = Op::Renew { resource: resource.to_owned(), lease: lease(token) };
        let body = json!({ "code": code, "reason": reason, "applied": "no", "revision": self.revision });
        self.add(renew, (409, body), at);
    }

    /// An acquire of the request that got `token` elsewhere, refused.
    pub(super) fn acquire_refused(
        &mut self,
        resource: &str,
        (owner, token): (&str, u64),
        code: &str,
        at: (u64, u32),
    ) {
        let body = json!({ "code": code, "applied": "no", "revision": self.revision });
        self.add(acquire(resource, owner, token, 500), (409, body), at);
    }

    /// A change of the policy whose answer was lost.
    pub(super) fn change_policy_unknown(&mut self) {
        self.push(Op::ChangePolicy { replaces: 0, policy: json!({}) }, Outcome::Unknown("lost".to_owned()));
    }

    /// A release whose answer was lost.
    pub(super) fn release_unknown(&mut self, resource: &str, token: u64) {
        self.push(release(resource, token), Outcome::Unknown("lost".to_owned()));
    }

    /// An acquire whose answer was lost.
    pub(super) fn acquire_unknown(&mut self, resource: &str, owner: &str, token: u64) {
        self.push(acquire(resource, owner, token, 0), Outcome::Unknown("lost".to_owned()));
    }

    pub(super) fn status_free(&mut self, resource: &str, at: (u64, u32)) {
        let body = json!({ "held": false, "queueLength": 0, "revision": self.revision });
        self.add(Op::Status { resource: resource.to_owned() }, (200, body), at);
    }

    pub(super) fn status_held(&mut self, resource: &str, holder: &str, token: u64, at: (u64, u32)) {
        self.status(resource, (holder, token, TTL_MS), at);
    }

    pub(super) fn status(
        &mut self,
        resource: &str,
        (holder, token, remaining_ms): (&str, u64, u64),
        at: (u64, u32),
    ) {
        let body = json!({ "held": true, "holder": holder, "fencingToken": token, "remainingMs": remaining_ms,
            "ttlMs": TTL_MS, "queueLength": 0, "revision": self.revision });
        self.add(Op::Status { resource: resource.to_owned() }, (200, body), at);
    }

    pub(super) fn queue(&mut self, resource: &str, owners: &[&str], at: (u64, u32)) {
        let waiters: Vec<_> =
            owners.iter().map(|owner| json!({ "owner": owner, "attached": true })).collect();
        let body = json!({ "waiters": waiters, "revision": self.revision });
        self.add(Op::Queue { resource: resource.to_owned() }, (200, body), at);
    }

    fn add(&mut self, op: Op, (status, body): (u16, Value), (index, place): (u64, u32)) {
        self.revision = self.revision.max(body["revision"].as_u64().unwrap_or_default());
        let position = Some(Position { index, place });
        self.push(op, Outcome::Answer(Answer { status, position, leader: None, body }));
    }

    fn push(&mut self, op: Op, outcome: Outcome) {
        let number = self.calls.len() as u64;
        let (began_us, ended_us) = (self.began_ms * 1_000, self.ended_ms * 1_000);
        self.calls.push(Call { number, client: number, node: 1, began_us, ended_us, op, outcome });
    }
}

fn lease(token: u64) -> String {
    format!("lease-{token}")
}

fn acquire(resource: &str, owner: &str, token: u64, wait_ms: u64) -> Op {
    let request = format!("{owner}-{token}");
    Op::Acquire {
        resource: resource.to_owned(),
        owner: owner.to_owned(),
        request,
        ttl_ms: TTL_MS,
        wait_ms,
        delay_ms: 0,
    }
}

fn release(resource: &str, token: u64) -> Op {
    Op::Release { resource: resource.to_owned(), lease: lease(token) }
}

fn granted(token: u64, revision: u64, repeated: bool) -> (u16, Value) {
    let body = json!({ "acquired": true, "leaseId": lease(token), "fencingToken": token, "remainingMs": TTL_MS,
        "repeated": repeated, "revision": revision });
    (200, body)
}
