//! A history as facts in the log's order.
//!
//! Owns: which answers have a place in that order, and which leases were handed out. Answers without a place (no
//! leader, no quorum, unknown outcome) and calls without an answer are no facts; they may explain facts.

use super::Breach;
use crate::history::{Call, Op, Position, Told};
use std::collections::{BTreeMap, BTreeSet};

/// One decided answer about one resource.
#[derive(Clone, Debug)]
pub(super) struct Fact<'a> {
    pub(super) at: Position,
    pub(super) revision: u64,
    pub(super) call: &'a Call,
    pub(super) resource: String,
    pub(super) told: Told,
}

/// A lease that some client was told of as its own.
#[derive(Clone, Debug)]
pub(super) struct Lease<'a> {
    pub(super) token: u64,
    pub(super) resource: &'a str,
    pub(super) id: String,
    pub(super) owner: &'a str,
    pub(super) ttl_ms: u64,
    /// How long the resource stays closed when it expires.
    pub(super) delay_ms: u64,
    /// Every call that may have ended it by its holder's wish.
    pub(super) releases: Vec<&'a Call>,
}

/// All of them.
pub(super) struct Facts<'a> {
    calls: &'a [Call],
    facts: Vec<Fact<'a>>,
    by_resource: BTreeMap<String, Vec<usize>>,
    leases: BTreeMap<u64, Lease<'a>>,
    token_by_id: BTreeMap<String, u64>,
    unreadable: Vec<Breach>,
}

impl<'a> Facts<'a> {
    pub(super) fn read(calls: &'a [Call]) -> Self {
        let mut facts = Self {
            calls,
            facts: Vec::new(),
            by_resource: BTreeMap::new(),
            leases: BTreeMap::new(),
            token_by_id: BTreeMap::new(),
            unreadable: Vec::new(),
        };
        let touched: BTreeSet<&str> = calls.iter().filter_map(|call| call.op.resource()).collect();
        calls.iter().for_each(|call| facts.take(call, &touched));
        // What ends a lease comes before what its end brought about in the same step.
        facts.facts.sort_by_key(|fact| (fact.at, rank(&fact.told), fact.call.number));
        facts.index();
        facts
    }

    fn take(&mut self, call: &'a Call, touched: &BTreeSet<&str>) {
        let Some(answer) = call.answer() else { return };
        let told = match Told::read(&call.op, answer) {
            Ok(told) if told.is_decided() => told,
            Ok(_) => return,
            Err(text) => return self.unreadable.push(Breach::new("an answer", text, &[call])),
        };
        let (Some(at), Some(revision)) = (answer.position, answer.body["revision"].as_u64()) else {
            let text = "an answer without a position or revision";
            return self.unreadable.push(Breach::new("an answer", text, &[call]));
        };
        let mut add = |resource: &str, told: Told| {
            self.facts.push(Fact { at, revision, call, resource: resource.to_owned(), told });
        };
        match (&call.op, told) {
            (Op::List { prefix }, Told::List { locks, is_whole }) => {
                let listed: BTreeMap<_, _> = locks.into_iter().collect();
                let here = touched.iter().filter(|name| name.starts_with(prefix.as_str()));
                // What a whole list leaves out is free.
                for resource in here.filter(|name| is_whole || listed.contains_key(**name)) {
                    let held = listed.get(*resource).cloned().flatten();
                    add(resource, Told::Status { held, queue_length: 0 });
                }
            }
            (op, told) => add(op.resource().unwrap_or_default(), told),
        }
    }

    fn index(&mut self) {
        for (index, fact) in self.facts.iter().enumerate() {
            self.by_resource.entry(fact.resource.clone()).or_default().push(index);
            if let Told::Granted { token, lease, .. } = &fact.told {
                self.token_by_id.insert(lease.clone(), *token);
                self.leases.entry(*token).or_insert_with(|| Lease {
                    token: *token,
                    resource: fact.call.op.resource().unwrap_or_default(),
                    id: lease.clone(),
                    owner: owner_of(&fact.call.op),
                    ttl_ms: 0,
                    delay_ms: 0,
                    releases: Vec::new(),
                });
            }
        }
        let terms: BTreeMap<(&str, &str), (u64, u64)> = self
            .calls
            .iter()
            .filter_map(|call| match &call.op {
                Op::Acquire { owner, request, ttl_ms, delay_ms, .. } => {
                    Some(((owner.as_str(), request.as_str()), (*ttl_ms, *delay_ms)))
                }
                _ => None,
            })
            .collect();
        for fact in &self.facts {
            let (Told::Granted { token, .. }, Some(key)) = (&fact.told, request_of(&fact.call.op)) else {
                continue;
            };
            if let (Some(lease), Some(terms)) = (self.leases.get_mut(token), terms.get(&key)) {
                (lease.ttl_ms, lease.delay_ms) = *terms;
            }
        }
        for call in self.calls {
            if let Op::Release { lease, .. } = &call.op
                && let Some(lease) = self.token_by_id.get(lease).and_then(|token| self.leases.get_mut(token))
            {
                lease.releases.push(call);
            }
        }
    }

    pub(super) fn calls(&self) -> &'a [Call] {
        self.calls
    }

    /// In the log's order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Fact<'a>> {
        self.facts.iter()
    }

    /// Those of each resource, in the log's order.
    pub(super) fn by_resource(&self) -> impl Iterator<Item = (&str, Vec<&Fact<'a>>)> {
        self.by_resource.iter().map(|(resource, indexes)| {
            (resource.as_str(), indexes.iter().map(|index| &self.facts[*index]).collect())
        })
    }

    /// Those of one resource, in the log's order.
    pub(super) fn of(&self, resource: &str) -> impl Iterator<Item = &Fact<'a>> {
        let indexes = self.by_resource.get(resource).map_or(&[][..], Vec::as_slice);
        indexes.iter().map(|index| &self.facts[*index])
    }

    /// Those of each request of one caller, in the log's order.
    pub(super) fn by_request(&self) -> BTreeMap<(&str, &str), Vec<&Fact<'a>>> {
        let mut requests: BTreeMap<(&str, &str), Vec<&Fact<'a>>> = BTreeMap::new();
        for fact in &self.facts {
            if let Some(key) = request_of(&fact.call.op) {
                requests.entry(key).or_default().push(fact);
            }
        }
        requests
    }

    /// By token.
    pub(super) fn leases(&self) -> impl Iterator<Item = &Lease<'a>> {
        self.leases.values()
    }

    pub(super) fn lease(&self, token: u64) -> Option<&Lease<'a>> {
        self.leases.get(&token)
    }

    /// The lease that a renewal or release speaks of.
    pub(super) fn lease_meant(&self, op: &Op) -> Option<&Lease<'a>> {
        match op {
            Op::Renew { lease, .. } | Op::Release { lease, .. } => self.lease(*self.token_by_id.get(lease)?),
            _ => None,
        }
    }

    /// The token that a fact shows as current at its place.
    pub(super) fn current(&self, fact: &Fact<'_>) -> Option<u64> {
        match &fact.told {
            Told::Granted { token, .. } => Some(*token),
            Told::Renewed { .. } | Told::Released { already: false } => {
                self.lease_meant(&fact.call.op).map(|lease| lease.token)
            }
            Told::Status { held: Some(held), .. } => Some(held.token),
            Told::Refused(refused) if refused.code == "held" => refused.held.as_ref().map(|held| held.token),
            _ => None,
        }
    }
}

/// Answers that nobody can read.
pub(super) fn unreadable(facts: &Facts<'_>) -> Vec<Breach> {
    facts.unreadable.clone()
}

/// The identity of a request: owner and request id.
pub(super) fn request_of(op: &Op) -> Option<(&str, &str)> {
    match op {
        Op::Acquire { owner, request, .. } | Op::Cancel { owner, request, .. } => Some((owner, request)),
        _ => None,
    }
}

fn owner_of(op: &Op) -> &str {
    request_of(op).map_or("", |(owner, _)| owner)
}

fn rank(told: &Told) -> u8 {
    match told {
        Told::Released { .. } => 0,
        Told::Granted { .. } => 1,
        _ => 2,
    }
}
