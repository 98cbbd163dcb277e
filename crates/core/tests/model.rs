//! Every history of a few clients and resources, up to a bound, walked over the real `apply`.
//!
//! Owns: the bound, and the properties, each checked from what the table says (replies, answers, events, views)
//! against a small memory of what it said before. Never: looks into the table.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod model_words;

use kunci_core::command::{Command, Entry, SetPolicy};
use kunci_core::event::{Change, Event, EventKind};
use kunci_core::reply::{AcquireRefusal, AcquireReply, Applied, CancelReply, DetachReply, RenewReply, Reply};
use kunci_core::view::{Status, WaiterView};
use kunci_core::{LockTable, Restore};
use kunci_types::{ClusterTime, Policy, Revision};
use model_words::{index, owner, resource};
use stateright::{Checker, Model, Property};
use std::hash::{Hash, Hasher};

const STEP_MS: u64 = 1_000;
const TTL_MS: u64 = 2_000;
const WAIT_MS: u64 = 2_000;
const GRACE_MS: u64 = 1_000;
const REQUESTS_MAX: usize = 3;
const CALLS_MAX: usize = 2;

/// How far histories go.
#[derive(Clone)]
struct Bound {
    /// The resource of each request; every request has a client of its own.
    resource_of: Vec<usize>,
    /// The lock-delay of every lease, in ms.
    lock_delay_ms: u64,
    calls: u64,
    steps: u64,
    takeovers: u8,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    Try(usize),
    Wait(usize),
    Renew(usize),
    /// Of the lease that the request was ever granted: late ones too.
    Release(usize),
    Cancel(usize),
    Detach {
        request: usize,
        call: u64,
    },
    Abandon(usize),
    Force(usize),
    TakeOver,
    Step,
    /// Time and a renewal in one entry.
    StepAndRenew(usize),
    StepAndTakeOver,
    /// A restart: the table is read back from its snapshot, and must do the same from there.
    Restore,
}

/// What went wrong, if anything did; a property for each.
const PROPERTIES: [&str; 8] = [
    "one holder",
    "tokens grow",
    "at most one grant for a request id",
    "attached waiters are served in order",
    "no attached waiter on a free resource",
    "no lease ends before its time",
    "no grant after timed out or cancelled",
    "one final answer for a call",
];

/// What the table has said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Memory {
    broken: u8,
    takeovers: u8,
    calls: [u64; REQUESTS_MAX],
    pending: [[bool; CALLS_MAX]; REQUESTS_MAX],
    places: [Option<u64>; REQUESTS_MAX],
    /// The call whose lease id was granted.
    granted: [Option<u64>; REQUESTS_MAX],
    never: [bool; REQUESTS_MAX],
    last_token: u64,
    /// Which request holds a resource, and until when at least.
    holder: [Option<(usize, u64)>; 2],
}

impl Memory {
    fn expect(&mut self, property: usize, holds: bool) {
        if !holds {
            self.broken |= 1 << property;
        }
    }
}

/// A table and what it said. Equal when the tables' digests are: a digest covers every bit of the state.
#[derive(Clone, Debug)]
struct World {
    table: LockTable,
    digest: u128,
    memory: Memory,
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest && self.memory == other.memory
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
        self.memory.hash(state);
    }
}

impl Model for Bound {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let mut table = LockTable::new();
        let policy = Policy { waiter_grace_ms: GRACE_MS, ..Policy::default() };
        let set = Command::SetPolicy(SetPolicy { replaces: Revision::ZERO, policy });
        table.apply(&Entry::new(ClusterTime::START, vec![set]));
        vec![World { digest: table.digest(), table, memory: Memory::default() }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let memory = &world.memory;
        let may_step = world.table.now().as_ms() < self.steps * STEP_MS;
        for request in 0..self.resource_of.len() {
            if memory.calls[request] < self.calls {
                actions.extend([Action::Try(request), Action::Wait(request)]);
            }
            if memory.granted[request].is_some() {
                actions.extend([Action::Renew(request), Action::Release(request)]);
                if may_step {
                    actions.push(Action::StepAndRenew(request));
                }
            }
            actions.push(Action::Cancel(request));
            actions.extend((0..memory.calls[request]).map(|call| Action::Detach { request, call }));
            if memory.calls[request] > 0 {
                actions.push(Action::Abandon(request));
            }
        }
        let resources = self.resource_of.iter().max().map_or(0, |last| last + 1);
        actions.extend((0..resources).filter(|at| memory.holder[*at].is_some()).map(Action::Force));
        if memory.takeovers < self.takeovers {
            actions.push(Action::TakeOver);
            if may_step {
                actions.push(Action::StepAndTakeOver);
            }
        }
        if may_step {
            actions.push(Action::Step);
        }
        // A sample: a restore costs as much as a dozen commands.
        if world.digest.is_multiple_of(16) {
            actions.push(Action::Restore);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        if action == Action::Restore {
            self.check_restored(world);
            return None;
        }
        let entry = self.entry(&mut next, action);
        let applied = next.table.apply(&entry);
        self.remember(&mut next, action, &applied);
        next.digest = next.table.digest();
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(PROPERTIES[0], |_, world: &World| world.memory.broken & 1 == 0),
            Property::always(PROPERTIES[1], |_, world: &World| world.memory.broken & 2 == 0),
            Property::always(PROPERTIES[2], |_, world: &World| world.memory.broken & 4 == 0),
            Property::always(PROPERTIES[3], |_, world: &World| world.memory.broken & 8 == 0),
            Property::always(PROPERTIES[4], |_, world: &World| world.memory.broken & 16 == 0),
            Property::always(PROPERTIES[5], |_, world: &World| world.memory.broken & 32 == 0),
            Property::always(PROPERTIES[6], |_, world: &World| world.memory.broken & 64 == 0),
            Property::always(PROPERTIES[7], |_, world: &World| world.memory.broken & 128 == 0),
        ]
    }
}

impl Bound {
    /// The table read back from its snapshot does the same as the table, whatever comes next.
    fn check_restored(&self, world: &World) {
        world.table.check();
        let mut restore = Restore::default();
        for chunk in world.table.snapshot().chunks() {
            restore.chunk(&chunk).unwrap();
        }
        let restored = restore.finish().unwrap();
        assert_eq!(restored.digest(), world.digest);
        let mut actions = Vec::new();
        self.actions(world, &mut actions);
        for action in actions.into_iter().filter(|action| *action != Action::Restore) {
            let mut original = world.clone();
            let entry = self.entry(&mut original, action);
            let mut twin = restored.clone();
            assert_eq!(twin.apply(&entry), original.table.apply(&entry));
            assert_eq!(twin.digest(), original.table.digest());
        }
    }

    /// Compares what the table says now with what it said before, in the order in which it happened.
    fn remember(&self, world: &mut World, action: Action, applied: &Applied) {
        let now = world.table.now().as_ms();
        let reply = applied.replies.first().map(|reply| &reply.value);
        if let (Action::Renew(request) | Action::StepAndRenew(request), Some(Reply::Renew(replies))) =
            (action, reply)
            && let RenewReply::Renewed { .. } = replies[0]
        {
            let held = world.memory.holder[self.resource_of[request]].replace((request, now + TTL_MS));
            world.memory.expect(0, held.is_some_and(|(holder, _)| holder == request));
        }
        for event in &applied.events {
            self.remember_event(world, now, event);
        }
        let memory = &mut world.memory;
        for answer in &applied.answers {
            let (request, call) = (index(answer.attempt.get() / 10), answer.attempt.get() % 10);
            let was_pending = std::mem::replace(&mut memory.pending[request][index(call)], false);
            memory.expect(7, was_pending);
            heard(memory, request, &answer.reply.value);
        }
        if let Action::Try(request) | Action::Wait(request) = action {
            // Whatever the newest call is told, an older one of the same request has been answered by now.
            let newest = index(memory.calls[request] - 1);
            let older_is_open = memory.pending[request][..newest].contains(&true);
            memory.expect(7, !older_is_open);
        }
        match (action, reply) {
            (Action::TakeOver | Action::StepAndTakeOver, _) => memory.takeovers += 1,
            (Action::Try(request) | Action::Wait(request), Some(Reply::Acquire(AcquireReply::Queued))) => {
                let call = index(memory.calls[request] - 1);
                memory.pending[request][call] = true;
            }
            (Action::Try(request) | Action::Wait(request), Some(Reply::Acquire(reply))) => {
                heard(memory, request, reply);
            }
            (Action::Cancel(request), Some(Reply::Cancel(CancelReply::Cancelled(_)))) => {
                memory.never[request] = true;
            }
            (Action::Detach { request, call }, Some(Reply::Detach(DetachReply::Detached { .. }))) => {
                memory.pending[request][index(call)] = false;
            }
            _ => {}
        }
        // Whose client stayed away from a new leader is detached without a word: the call's node, which isn't the
        // leader any more, has ended the call. Its wait may even be over in the same entry.
        for request in 0..self.resource_of.len() {
            let queue = world.table.queue(&resource(self.resource_of[request]));
            let is_there = |waiter: &WaiterView| waiter.attached && waiter.owner == owner(request);
            if world.memory.takeovers > 0 && !queue.iter().any(is_there) {
                world.memory.pending[request] = [false; CALLS_MAX];
            }
        }
        for at in 0..2 {
            let queue = world.table.queue(&resource(at));
            if let Status::Free { .. } = world.table.status(&resource(at)) {
                let attached = queue.iter().any(|waiter| waiter.attached);
                world.memory.expect(4, !attached);
            }
        }
    }

    fn remember_event(&self, world: &mut World, now: u64, event: &Event) {
        let EventKind::Resource { owner, change, .. } = &event.kind else { return };
        let request: usize = owner.as_str().parse().unwrap();
        let at = self.resource_of[request];
        let (memory, number) = (&mut world.memory, event.revision.get());
        match change {
            Change::Queued => memory.places[request] = Some(number),
            Change::TimedOut | Change::Cancelled | Change::Dropped => {
                memory.places[request] = None;
                memory.never[request] = true;
            }
            Change::Granted { .. } => {
                // Who is granted without having queued stands behind everybody.
                let place = memory.places[request].take().unwrap_or(u64::MAX);
                let passed_over = world.table.queue(&resource(at)).iter().any(|waiter| {
                    let other: usize = waiter.owner.as_str().parse().unwrap();
                    waiter.attached && memory.places[other].is_some_and(|other| other < place)
                });
                let (is_first, may_be) = (memory.granted[request].is_none(), !memory.never[request]);
                memory.expect(0, memory.holder[at].is_none());
                memory.expect(1, number > memory.last_token);
                memory.expect(2, is_first);
                memory.expect(3, !passed_over);
                memory.expect(6, may_be);
                memory.last_token = number;
                memory.holder[at] = Some((request, now + TTL_MS));
                memory.granted[request] = Some(0);
            }
            Change::Released { .. }
            | Change::Expired { .. }
            | Change::Forced { .. }
            | Change::Abandoned { .. } => {
                let held = memory.holder[at].take();
                memory.expect(0, held.is_some_and(|(holder, _)| holder == request));
                if let Change::Expired { .. } = change {
                    memory.expect(5, held.is_some_and(|(_, until)| until <= now));
                }
            }
        }
    }
}

fn heard(memory: &mut Memory, request: usize, reply: &AcquireReply) {
    match reply {
        AcquireReply::Granted(grant) => {
            let call = u64::from(grant.lease_id.as_bytes()[1]);
            memory.granted[request] = Some(call);
        }
        AcquireReply::Refused(AcquireRefusal::TimedOut(_) | AcquireRefusal::Cancelled(_)) => {
            memory.never[request] = true;
        }
        AcquireReply::Refused(_) => {}
        AcquireReply::Queued => memory.expect(7, false),
    }
}

/// Walks every history within the bound, depth first: breadth first would keep millions of tables in memory.
fn explore(bound: Bound) -> usize {
    let checker = bound.checker().spawn_dfs().join();
    checker.assert_properties();
    checker.unique_state_count()
}

/// Defends S1 to S3, S5 to S7.
#[test]
fn every_history_within_the_bounds_keeps_the_promises() {
    // Three clients at one resource; two that call again, with lock-delays and two takeovers; two at one resource
    // while a third has another. Each with its own end of time.
    let queue = Bound { resource_of: vec![0, 0, 0], lock_delay_ms: 0, calls: 1, steps: 3, takeovers: 1 };
    let retries = Bound { resource_of: vec![0, 0], lock_delay_ms: 1_000, calls: 2, steps: 5, takeovers: 2 };
    let apart = Bound { resource_of: vec![0, 0, 1], lock_delay_ms: 0, calls: 1, steps: 3, takeovers: 1 };
    let states = std::thread::scope(|threads| {
        let walks = [[queue, retries].to_vec(), [apart].to_vec()]
            .map(|bounds| threads.spawn(|| bounds.into_iter().map(explore).collect::<Vec<_>>()));
        walks.map(|walk| walk.join().unwrap())
    });
    println!("states visited: {states:?}");
    let all: usize = states.iter().flatten().sum();
    assert!(all >= 1_000_000, "{all} states were visited: expected at least 1000000");
}
