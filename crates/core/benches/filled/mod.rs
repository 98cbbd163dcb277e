//! A table with so many resources in it, and commands on it that can be told by a number.
//!
//! Owns: what "so many resources" is: each is held, or had a lease that ended and whose request is still remembered, half of
//! them each. Never: a measurement.

#![allow(dead_code, reason = "each bench uses its part")]

use kunci_core::LockTable;
use kunci_core::command::{
    Acquire, Cancel, Command, Entry, ForceRelease, Proof, Release, Renew, Renewal, RequestIdFrom, SetPolicy,
};
use kunci_core::reply::{AcquireReply, Reply};
use kunci_types::{
    Attempt, Caller, ClusterTime, FencingToken, LeaseId, LockDelay, Owner, Policy, Reason, RequestId,
    ResourceName, Revision, Ttl, Wait,
};

/// Commands of one entry while a table is filled.
pub(crate) const AT_ONCE: u64 = 500;
/// Of so many resources one is held.
const HELD_OF: u64 = 2;
/// From one number to the next where they are to be far apart; a prime, so that no small count of them meets.
const FAR: u64 = 7_919;

/// A table of `count` resources.
pub(crate) struct Filled {
    /// The table.
    pub(crate) table: LockTable,
    count: u64,
}

impl Filled {
    /// Acquires `count` resources for as long as `policy` allows, and releases every other.
    ///
    /// # Panics
    /// When one isn't granted.
    pub(crate) fn with(count: u64, policy: Policy) -> Self {
        let mut table = LockTable::new();
        let ttl = Ttl::from_ms(policy.ttl_ms_max);
        table.apply(&at(0, vec![Command::SetPolicy(SetPolicy { replaces: Revision::ZERO, policy })]));
        for first in (0..count).step_by(usize::try_from(AT_ONCE).unwrap()) {
            let numbers = first..(first + AT_ONCE).min(count);
            let applied = table.apply(&at(0, numbers.clone().map(|number| held(number, ttl)).collect()));
            let granted = |reply: &Reply| matches!(reply, Reply::Acquire(AcquireReply::Granted(_)));
            assert!(applied.replies.iter().all(|reply| granted(&reply.value)), "a resource isn't free");
            table.apply(&at(
                0,
                numbers.filter(|number| number % HELD_OF != 0).map(|number| release(number, 0)).collect(),
            ));
        }
        Self { table, count }
    }

    /// How many of them are held.
    pub(crate) fn held_count(&self) -> u64 {
        self.count.div_ceil(HELD_OF)
    }

    /// Numbers of held resources, far apart from each other. At most [`Filled::held_count`] differ.
    pub(crate) fn held(&self, count: u64) -> Vec<u64> {
        (0..count).map(|number| number * FAR % self.held_count() * HELD_OF).collect()
    }

    /// Numbers of resources that were never seen, far apart from each other; a different set for each `lane`.
    pub(crate) fn unseen(&self, lane: u64, count: u64) -> Vec<u64> {
        (0..count).map(|number| self.count + (lane * count + number) * FAR).collect()
    }

    /// The token of a held resource.
    ///
    /// # Panics
    /// When it isn't held.
    pub(crate) fn token(&self, number: u64) -> FencingToken {
        match self.table.status(&name(number)) {
            kunci_core::view::Status::Held(held) => held.token,
            other => panic!("{} isn't held: {other:?}", name(number).as_str()),
        }
    }
}

/// The TTL of every request but those that fill the table.
pub(crate) const SHORT: Ttl = Ttl::from_ms(30_000);

/// An entry at an instant, in ms.
pub(crate) fn at(ms: u64, commands: Vec<Command>) -> Entry {
    Entry::new(ClusterTime::from_ms(ms), commands)
}

/// One entry for each command.
pub(crate) fn alone(commands: impl IntoIterator<Item = Command>) -> Vec<Entry> {
    commands.into_iter().map(|command| at(0, vec![command])).collect()
}

/// The resource of a number.
pub(crate) fn name(number: u64) -> ResourceName {
    ResourceName::from_log(&format!("orders/{}/{number}", number % 97))
}

/// Its owner.
fn owner(number: u64) -> Owner {
    Owner::from_log(&format!("worker-{}", number % 500))
}

fn request_id(number: u64, call: u64) -> RequestId {
    RequestId::from_log(&format!(
        "{call:04x}{:028x}",
        u128::from(number) * 0x9e37_79b9_7f4a_7c15 % (1 << 112)
    ))
}

fn lease_id(number: u64, call: u64) -> LeaseId {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(number * 16 + call).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    LeaseId::from_bytes(bytes)
}

/// The first request for it, whose lease lasts longer than the measurement.
fn held(number: u64, ttl: Ttl) -> Command {
    asked(number, 0, Wait::Try, ttl)
}

/// The first request for it.
pub(crate) fn first(number: u64, wait: Wait) -> Command {
    asked(number, 0, wait, SHORT)
}

/// A second request for it, by somebody else.
pub(crate) fn second(number: u64, wait: Wait) -> Command {
    asked(number, 1, wait, SHORT)
}

/// A third one.
pub(crate) fn third(number: u64, wait: Wait) -> Command {
    asked(number, 2, wait, SHORT)
}

fn asked(number: u64, call: u64, wait: Wait, ttl: Ttl) -> Command {
    let owner = owner(number + call);
    Command::Acquire(Acquire {
        resource: name(number),
        caller: Caller::Unproven(owner.clone()),
        owner,
        request_id: request_id(number, call),
        request_id_from: RequestIdFrom::Client,
        ttl: Some(ttl),
        wait,
        lock_delay: LockDelay::from_ms(0),
        metadata: None,
        lease_id: lease_id(number, call),
        attempt: Attempt::new(number * 16 + call),
    })
}

/// Sets the first request's lease back to its full time.
pub(crate) fn renew(number: u64) -> Command {
    let proof = Proof::LeaseId(lease_id(number, 0));
    Command::Renew(Renew { leases: vec![Renewal { resource: name(number), proof, ttl: None }] })
}

/// Ends the lease of a request: 0 is the first.
pub(crate) fn release(number: u64, call: u64) -> Command {
    Command::Release(Release { resource: name(number), proof: Proof::LeaseId(lease_id(number, call)) })
}

/// Takes the third request out of the queue.
pub(crate) fn cancel(number: u64) -> Command {
    Command::Cancel(Cancel {
        resource: name(number),
        caller: Caller::Unproven(owner(number + 2)),
        request_id: request_id(number, 2),
    })
}

/// Ends a lease by its token.
pub(crate) fn force_release(number: u64, token: FencingToken) -> Command {
    let reason = Reason::from_log("bench");
    Command::ForceRelease(ForceRelease { resource: name(number), token, reason })
}
