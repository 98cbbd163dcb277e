//! Random histories, lived by the lock table and by a naive twin of it, which must agree on every answer, event
//! and token; through restores from snapshots too. And bytes of any kind, which are refused and never a panic.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod twin_model;

use kunci_core::command::{
    Abandon, Acquire, Cancel, Command, Departure, Detach, Entry, ForceRelease, Proof, RaiseFeatureLevel,
    RaiseRevision, Release, Renew, Renewal, RequestIdFrom, SetPolicy,
};
use kunci_core::reply::Applied;
use kunci_core::view::Status;
use kunci_core::{LockTable, RequestKey, Restore};
use kunci_types::{
    Attempt, Caller, ClusterTime, FencingToken, LeaseId, LockDelay, Metadata, Owner, Policy, Reason,
    RequestId, ResourceName, Revision, Ttl, Wait,
};
use proptest::prelude::*;
use twin_model::{Call, Outcome, Twin};

/// A command whose lease ids, tokens and calls are picked from those that are known when it runs.
#[derive(Clone, Debug)]
enum Step {
    Acquire {
        request: usize,
        resource: usize,
        ttl: Option<u64>,
        wait: u64,
        delay: u64,
        meta: bool,
        server: bool,
    },
    Renew {
        picks: Vec<(Shown, Option<u64>)>,
    },
    Release(Shown),
    Cancel {
        request: usize,
        resource: usize,
    },
    Detach {
        request: usize,
        back: u64,
        told: bool,
    },
    Abandon {
        request: usize,
        back: u64,
    },
    Force {
        resource: usize,
        token: u64,
    },
    TakeOver,
    Policy {
        preset: usize,
        current: bool,
    },
    Raise {
        by: u64,
    },
    Level(u32),
}

/// What a caller shows: the lease at `pick` from the newest, as its id or as owner and token, on `resource` or on
/// the lease's own.
#[derive(Clone, Debug)]
struct Shown {
    pick: usize,
    resource: Option<usize>,
    form: u8,
}

#[derive(Clone, Debug)]
enum Time {
    Plus(u64),
    NextDeadline { early: u64 },
    Back(u64),
}

const RESOURCES: [&str; 3] = ["a/1", "a/2", "b"];

/// Who asks, and as which owner; the last two share an authenticated caller.
fn requests() -> Vec<(Caller, Owner, RequestId)> {
    let owner = |text: &str| Owner::parse(text).unwrap();
    let who = [
        (Caller::Unproven(owner("x")), owner("x")),
        (Caller::Unproven(owner("y")), owner("y")),
        (Caller::Proven(owner("x")), owner("x")),
    ];
    let of = |(caller, owner): &(Caller, Owner)| {
        ["1", "2", "3"].map(|id| (caller.clone(), owner.clone(), RequestId::parse(id).unwrap()))
    };
    who.iter().flat_map(of).collect()
}

fn steps() -> impl Strategy<Value = Step> {
    let ttl = prop_oneof![
        3 => Just(None), 8 => prop_oneof![Just(1_000), Just(2_000), Just(5_000)].prop_map(Some),
        1 => prop_oneof![Just(0), Just(3_600_001), Just(u64::MAX)].prop_map(Some)
    ];
    let wait =
        prop_oneof![6 => Just(0), 4 => Just(1_000), 6 => Just(5_000), 8 => Just(60_000), 1 => Just(u64::MAX)];
    let delay = prop_oneof![6 => Just(0), 2 => Just(2_000), 1 => Just(60_001)];
    let shown = || {
        (0..4_usize, prop_oneof![9 => Just(None), 1 => (0..3_usize).prop_map(Some)], 0..5_u8)
            .prop_map(|(pick, resource, form)| Shown { pick, resource, form })
    };
    let renewal_ttl =
        prop_oneof![6 => Just(None), 2 => Just(Some(1_000)), 2 => Just(Some(10_000)), 1 => Just(Some(1))];
    // Each request has a home, so that retries agree with their first call more often than not.
    let resource = (0..9_usize, 0..12_usize).prop_map(|(request, roll)| match roll {
        0 => (request, (request + 1) % 3),
        1 => (request, (request + 2) % 3),
        _ => (request, request % 2),
    });
    prop_oneof![
        12 => (resource.clone(), ttl, wait, delay, rarely(10), rarely(4)).prop_map(
            |((request, resource), ttl, wait, delay, meta, server)| {
                Step::Acquire { request, resource, ttl, wait, delay, meta, server }
            }
        ),
        4 => prop::collection::vec((shown(), renewal_ttl), 1..4).prop_map(|picks| Step::Renew { picks }),
        5 => shown().prop_map(Step::Release),
        2 => resource.prop_map(|(request, resource)| Step::Cancel { request, resource }),
        4 => (0..9_usize, 0..2_u64, rarely(2))
            .prop_map(|(request, back, told)| Step::Detach { request, back, told }),
        2 => (0..9_usize, 0..2_u64).prop_map(|(request, back)| Step::Abandon { request, back }),
        1 => (0..3_usize, 0..3_u64).prop_map(|(resource, token)| Step::Force { resource, token }),
        2 => Just(Step::TakeOver),
        1 => (0..5_usize, rarely(2)).prop_map(|(preset, current)| Step::Policy { preset, current }),
        1 => prop_oneof![0..50_u64, Just(1 << 53)].prop_map(|by| Step::Raise { by }),
        1 => (0..3_u32).prop_map(Step::Level),
    ]
}

fn times() -> impl Strategy<Value = Time> {
    prop_oneof![
        6 => prop_oneof![Just(0), Just(1), Just(500), Just(1_000), Just(2_000), Just(10_000)]
            .prop_map(Time::Plus),
        1 => prop_oneof![Just(60_000), Just(130_000)].prop_map(Time::Plus),
        4 => (0..2_u64).prop_map(|early| Time::NextDeadline { early }),
        1 => (0..5_000_u64).prop_map(Time::Back),
    ]
}

/// What the test knows of its own commands.
struct World {
    requests: Vec<(Caller, Owner, RequestId)>,
    /// How many calls each request has made.
    calls: Vec<u64>,
    /// Each lease id that was drawn: where, whose, and its token once it was granted.
    drawn: Vec<(LeaseId, usize, usize)>,
    tokens: Vec<(LeaseId, FencingToken)>,
}

impl World {
    fn new() -> Self {
        Self { requests: requests(), calls: vec![0; 9], drawn: Vec::new(), tokens: Vec::new() }
    }

    fn attempt(&self, request: usize, back: u64) -> Attempt {
        Attempt::new(request as u64 * 1_000_000 + self.calls[request].saturating_sub(back))
    }

    fn resolve(&mut self, step: Step, twin: &Twin) -> Command {
        match step {
            Step::Acquire { request, resource, ttl, wait, delay, meta, server } => {
                self.calls[request] += 1;
                let lease_id = LeaseId::from_bytes((self.drawn.len() as u128 + 1).to_be_bytes());
                self.drawn.push((lease_id, resource, request));
                let (caller, owner, request_id) = self.requests[request].clone();
                Command::Acquire(Acquire {
                    resource: name(resource),
                    caller,
                    owner,
                    request_id,
                    request_id_from: if server { RequestIdFrom::Server } else { RequestIdFrom::Client },
                    ttl: ttl.map(Ttl::from_ms),
                    wait: Wait::from_ms(wait),
                    lock_delay: LockDelay::from_ms(delay),
                    metadata: meta.then(|| Metadata::parse("m").unwrap()),
                    lease_id,
                    attempt: self.attempt(request, 0),
                })
            }
            Step::Renew { picks } => Command::Renew(Renew {
                leases: picks
                    .into_iter()
                    .map(|(shown, ttl)| {
                        let (resource, proof) = self.show(&shown);
                        Renewal { resource, proof, ttl: ttl.map(Ttl::from_ms) }
                    })
                    .collect(),
            }),
            Step::Release(shown) => {
                let (resource, proof) = self.show(&shown);
                Command::Release(Release { resource, proof })
            }
            Step::Cancel { request, resource } => {
                let (caller, _, request_id) = self.requests[request].clone();
                Command::Cancel(Cancel { resource: name(resource), caller, request_id })
            }
            Step::Detach { request, back, told } => Command::Detach(Detach {
                request: self.key(request),
                attempt: self.attempt(request, back),
                departure: if told { Departure::Told } else { Departure::Lost },
            }),
            Step::Abandon { request, back } => {
                Command::Abandon(Abandon { request: self.key(request), attempt: self.attempt(request, back) })
            }
            Step::Force { resource, token } => {
                let resource = name(resource);
                let current = twin.lease(&resource).map_or(1, |lease| lease.token);
                let token = FencingToken::presented(current.saturating_sub(token).max(1)).unwrap();
                Command::ForceRelease(ForceRelease { resource, token, reason: Reason::parse("why").unwrap() })
            }
            Step::TakeOver => Command::TakeOver,
            Step::Policy { preset, current } => {
                let replaces = if current { twin.policy_revision } else { 0 };
                Command::SetPolicy(SetPolicy {
                    replaces: Revision::new(replaces).unwrap(),
                    policy: policy(preset),
                })
            }
            Step::Raise { by } => {
                let floor = Revision::new((twin.revision + by).min(Revision::MAX.get())).unwrap();
                Command::RaiseRevision(RaiseRevision { floor })
            }
            Step::Level(level) => Command::RaiseFeatureLevel(RaiseFeatureLevel { level }),
        }
    }

    fn key(&self, request: usize) -> RequestKey {
        let (caller, _, request_id) = &self.requests[request];
        RequestKey::new(caller, request_id)
    }

    fn show(&self, shown: &Shown) -> (ResourceName, Proof) {
        let newest = self.tokens.len().checked_sub(1 + shown.pick).and_then(|at| self.tokens.get(at));
        let Some((lease_id, token)) = newest.copied() else {
            let unknown = LeaseId::from_bytes([0xff; 16]);
            return (name(shown.resource.unwrap_or(0)), Proof::LeaseId(unknown));
        };
        let (_, resource, request) = *self.drawn.iter().find(|(id, _, _)| *id == lease_id).unwrap();
        let (caller, owner, _) = self.requests[request].clone();
        let proof = match shown.form {
            0 => Proof::OwnerToken { caller, owner, token },
            1 => {
                let (caller, owner, _) = self.requests[(request + 3) % 9].clone();
                Proof::OwnerToken { caller, owner, token }
            }
            _ => Proof::LeaseId(lease_id),
        };
        (name(shown.resource.unwrap_or(resource)), proof)
    }
}

fn name(number: usize) -> ResourceName {
    ResourceName::parse(RESOURCES[number]).unwrap()
}

fn policy(preset: usize) -> Policy {
    let default = Policy::default();
    let small = Policy { ttl_ms_max: 5_000, ttl_ms_default: 4_000, ..default.clone() };
    match preset {
        0 => default,
        1 => Policy { total_hold_ms_max: 7_000, retry_window_ms: 10_000, ..small },
        2 => Policy { waiters_per_resource_max: 2, waiters_per_namespace_max: 3, waiters_max: 3, ..default },
        3 => Policy { leases_per_namespace_max: 1, leases_max: 2, outcomes_max: 6, ..default },
        _ => Policy { owner_token_proof: false, ttl_ms_min: 0, ..default },
    }
}

/// True once in `odds`.
fn rarely(odds: u32) -> impl Strategy<Value = bool> + Clone {
    (0..odds).prop_map(|roll| roll == 0)
}

fn now(time: &Time, table: &LockTable) -> ClusterTime {
    let at = match time {
        Time::Plus(ms) => table.now().as_ms() + ms,
        Time::Back(ms) => table.now().as_ms().saturating_sub(*ms),
        Time::NextDeadline { early } => {
            table.next_deadline().unwrap_or(table.now()).as_ms().saturating_sub(*early)
        }
    };
    ClusterTime::from_ms(at)
}

fn restored(table: &LockTable) -> LockTable {
    let chunks: Vec<Vec<u8>> = table.snapshot().chunks().collect();
    let mut restore = Restore::default();
    for chunk in &chunks {
        restore.chunk(chunk).unwrap();
    }
    let restored = restore.finish().unwrap();
    assert!(restored.snapshot().chunks().eq(chunks), "equal states have equal bytes");
    restored
}

/// Everything that both say about one entry, and about how things stand after it.
fn agree(applied: &Applied, outcome: &Outcome, table: &LockTable, twin: &Twin) {
    let replies: Vec<_> =
        applied.replies.iter().map(|reply| (reply.value.clone(), reply.revision.get())).collect();
    assert_eq!(replies, outcome.replies);
    let answers: Vec<_> = applied
        .answers
        .iter()
        .map(|answer| (answer.attempt, answer.reply.value.clone(), answer.reply.revision.get()))
        .collect();
    assert_eq!(answers, outcome.answers);
    assert_eq!(applied.events, outcome.events);
    let places: Vec<u32> = applied.answers.iter().map(|answer| answer.reply.place).collect();
    assert!(places.is_sorted() && places.iter().all(|place| *place < applied.places));
    let mut places: Vec<u32> = applied.replies.iter().map(|reply| reply.place).collect();
    places.sort_unstable();
    assert!(places.is_sorted_by(|a, b| a < b) && places.iter().all(|place| *place < applied.places));

    assert_eq!(table.revision().get(), twin.revision);
    assert_eq!(table.held_count(), twin.leases.len() as u64);
    assert_eq!(table.request_count(), twin.records.len() as u64);
    for resource in (0..3).map(name) {
        agree_on(&resource, table, twin);
    }
}

fn agree_on(resource: &ResourceName, table: &LockTable, twin: &Twin) {
    match (table.status(resource), twin.lease(resource), twin.closed_until(resource)) {
        (Status::Held(view), Some(lease), None) => {
            assert_eq!(view.owner, lease.terms.owner);
            assert_eq!(view.token.get(), lease.token);
            assert_eq!(view.remaining_ms, lease.until - twin.now);
            assert_eq!(view.held_ms, twin.now - lease.since);
            assert_eq!(view.ttl_ms, lease.terms.ttl);
        }
        (Status::Closed { remaining_ms, .. }, None, Some(until)) => {
            assert_eq!(remaining_ms, until - twin.now)
        }
        (Status::Free { .. }, None, None) => {}
        (status, ..) => panic!("{resource} is {status:?}, and the twin says otherwise"),
    }
    let queue: Vec<_> = table
        .queue(resource)
        .into_iter()
        .map(|view| (view.owner, view.waited_ms, view.wait_remaining_ms, view.attached))
        .collect();
    let twins: Vec<_> = twin
        .waiters(resource)
        .into_iter()
        .map(|(_, waiting)| {
            let attached = matches!(waiting.call, Call::Open { .. });
            (waiting.terms.owner, twin.now - waiting.since, waiting.until - twin.now, attached)
        })
        .collect();
    assert_eq!(queue, twins);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Defends S1 to S3, S5 to S7 over random histories.
    #[test]
    fn the_table_and_its_naive_twin_agree(
        history in prop::collection::vec(
            (times(), prop::collection::vec(steps(), 0..4), rarely(20)), 1..80
        )
    ) {
        let (mut table, mut twin, mut world) = (LockTable::new(), Twin::new(), World::new());
        for (time, steps, restart) in history {
            if restart {
                table = restored(&table);
            }
            let now = now(&time, &table);
            let entry = Entry {
                now,
                commands: steps.into_iter().map(|step| world.resolve(step, &twin)).collect(),
            };
            let read_back = Entry::decode(&entry.encode());
            prop_assert_eq!(read_back.as_ref(), Ok(&entry));

            let outcome = twin.apply(&entry);
            let applied = table.apply(&entry);

            table.check();
            agree(&applied, &outcome, &table, &twin);
            world.tokens = twin.granted(world.tokens);
        }
        prop_assert_eq!(restored(&table).digest(), table.digest());
    }

    /// An entry's bytes are canonical, and bytes that are none are refused in words, never by a panic.
    #[test]
    fn damaged_entries_are_refused_and_never_a_panic(
        steps in prop::collection::vec(steps(), 0..6),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let (twin, mut world) = (Twin::new(), World::new());
        let commands = steps.into_iter().map(|step| world.resolve(step, &twin)).collect();
        let mut bytes = Entry { now: ClusterTime::from_ms(7), commands }.encode();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(entry) = Entry::decode(&bytes) {
            prop_assert_eq!(entry.encode(), bytes, "what is read writes the same bytes");
        }
    }

    /// Bytes of any kind.
    #[test]
    fn arbitrary_bytes_are_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..5_u8) {
        prop_assert!(!matches!(Entry::decode(&bytes), Ok(entry) if entry.encode() != bytes));
        let mut restore = begun();
        let mut chunk = vec![kind];
        chunk.extend(bytes);
        let _ = restore.chunk(&chunk);
        let _ = Restore::default().chunk(&chunk);
    }

    /// A snapshot's chunks with a few bytes changed.
    #[test]
    fn damaged_snapshots_are_never_a_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        which in any::<prop::sample::Index>(),
    ) {
        let mut chunks: Vec<Vec<u8>> = populated().snapshot().chunks().collect();
        let which = which.index(chunks.len());
        for (at, byte) in damage {
            let at = at.index(chunks[which].len());
            chunks[which][at] = byte;
        }
        let mut restore = Restore::default();
        for chunk in &chunks {
            if restore.chunk(chunk).is_err() {
                break;
            }
        }
    }
}

fn begun() -> Restore {
    let mut restore = Restore::default();
    restore.chunk(&LockTable::new().snapshot().chunks().next().unwrap()).unwrap();
    restore
}

/// A table that holds something of every kind.
fn populated() -> LockTable {
    let (mut table, mut world) = (LockTable::new(), World::new());
    let steps = [(0, 0), (1, 60_000), (2, 60_000), (4, 60_000)].map(|(request, wait)| Step::Acquire {
        request,
        resource: request % 2,
        ttl: Some(5_000),
        wait,
        delay: 2_000,
        meta: true,
        server: request == 4,
    });
    let more = [
        Step::Detach { request: 2, back: 0, told: true },
        Step::Cancel { request: 7, resource: 0 },
        Step::Force { resource: 1, token: 0 },
    ];
    let twin = Twin::new();
    let commands = steps.into_iter().chain(more).map(|step| world.resolve(step, &twin)).collect();
    table.apply(&Entry { now: ClusterTime::from_ms(10), commands });
    table
}

/// A snapshot that lacks a chunk, or has one too many, is refused.
#[test]
fn an_unfinished_snapshot_is_refused() {
    let chunks: Vec<Vec<u8>> = populated().snapshot().chunks().collect();
    for missing in 0..chunks.len() {
        let mut restore = Restore::default();
        let mut fed = chunks.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, chunk)| chunk);
        let refused = fed.any(|chunk| restore.chunk(chunk).is_err()) || restore.finish().is_err();
        assert!(refused, "chunk {missing} is missing and nobody says so");
    }
    let mut restore = Restore::default();
    restore.chunk(&chunks[0]).unwrap();
    assert!(restore.chunk(&chunks[0]).is_err(), "a second beginning");
}

/// Another release's formats and commands are refused by name, never skipped (case C132).
#[test]
fn what_another_release_wrote_is_refused_in_plain_words() {
    let mut entry = Entry { now: ClusterTime::START, commands: vec![Command::TakeOver] }.encode();
    let last = entry.len() - 1;
    entry[last] = 200;
    let refusal = Entry::decode(&entry).unwrap_err().to_string();
    assert!(refusal.contains("command 200") && refusal.contains("run the release"), "{refusal}");
    entry[0] = 9;
    let refusal = Entry::decode(&entry).unwrap_err().to_string();
    assert!(refusal.contains("format 9") && refusal.contains("run the release"), "{refusal}");
    let mut head = LockTable::new().snapshot().chunks().next().unwrap();
    head[1] = 9;
    let refusal = Restore::default().chunk(&head).unwrap_err().to_string();
    assert!(refusal.contains("a snapshot has format 9"), "{refusal}");
}
