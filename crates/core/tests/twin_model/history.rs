//! Random histories: steps that are resolved into commands against what is known when they run.

use super::Twin;
use kunci_core::command::{
    Abandon, Acquire, Cancel, Command, Departure, Detach, ForceRelease, Proof, RaiseFeatureLevel,
    RaiseRevision, Release, Renew, Renewal, RequestIdFrom, SetPolicy,
};
use kunci_core::{LockTable, RequestKey};
use kunci_types::{
    Attempt, Caller, ClusterTime, FencingToken, LeaseId, LockDelay, Metadata, Owner, Policy, Reason,
    RequestId, ResourceName, Revision, Ttl, Wait,
};
use proptest::prelude::*;

/// A command whose lease ids, tokens and calls are picked from those that are known when it runs.
#[derive(Clone, Debug)]
pub(crate) enum Step {
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
pub(crate) struct Shown {
    pick: usize,
    resource: Option<usize>,
    form: u8,
}

#[derive(Clone, Debug)]
pub(crate) enum Time {
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

pub(crate) fn steps() -> impl Strategy<Value = Step> {
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

pub(crate) fn times() -> impl Strategy<Value = Time> {
    prop_oneof![
        6 => prop_oneof![Just(0), Just(1), Just(500), Just(1_000), Just(2_000), Just(10_000)]
            .prop_map(Time::Plus),
        1 => prop_oneof![Just(60_000), Just(130_000)].prop_map(Time::Plus),
        4 => (0..2_u64).prop_map(|early| Time::NextDeadline { early }),
        1 => (0..5_000_u64).prop_map(Time::Back),
    ]
}

/// What the test knows of its own commands.
pub(crate) struct World {
    requests: Vec<(Caller, Owner, RequestId)>,
    /// How many calls each request has made.
    calls: Vec<u64>,
    /// Each lease id that was drawn: where, whose, and its token once it was granted.
    drawn: Vec<(LeaseId, usize, usize)>,
    pub(crate) tokens: Vec<(LeaseId, FencingToken)>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { requests: requests(), calls: vec![0; 9], drawn: Vec::new(), tokens: Vec::new() }
    }

    fn attempt(&self, request: usize, back: u64) -> Attempt {
        Attempt::new(request as u64 * 1_000_000 + self.calls[request].saturating_sub(back))
    }

    pub(crate) fn resolve(&mut self, step: Step, twin: &Twin) -> Command {
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

pub(crate) fn name(number: usize) -> ResourceName {
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
pub(crate) fn rarely(odds: u32) -> impl Strategy<Value = bool> + Clone {
    (0..odds).prop_map(|roll| roll == 0)
}

pub(crate) fn now(time: &Time, table: &LockTable) -> ClusterTime {
    let at = match time {
        Time::Plus(ms) => table.now().as_ms() + ms,
        Time::Back(ms) => table.now().as_ms().saturating_sub(*ms),
        Time::NextDeadline { early } => {
            table.next_deadline().unwrap_or(table.now()).as_ms().saturating_sub(*early)
        }
    };
    ClusterTime::from_ms(at)
}
