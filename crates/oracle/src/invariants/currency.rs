//! Which lease is current, walked in the log's order.
//!
//! Owns: the one rule behind S1, S3 and S8: once a lease is over, or a newer one was current, no later answer may
//! show the older one as current. Which guarantee an answer breaks depends on what it answers.

use super::facts::{Fact, Facts};
use crate::history::{Call, Told};
use std::collections::BTreeMap;

/// An answer that shows a lease as current that can't be.
pub(super) struct Contradiction<'a> {
    pub(super) fact: Fact<'a>,
    pub(super) because: &'a Call,
    pub(super) text: String,
}

/// All of them.
pub(super) fn contradictions<'a>(facts: &Facts<'a>) -> Vec<Contradiction<'a>> {
    facts.by_resource().flat_map(|(_, of_one)| walk(facts, &of_one)).collect()
}

/// What is known so far.
#[derive(Default)]
struct Walk<'a> {
    newest: u64,
    newest_shown_by: Option<&'a Call>,
    over: BTreeMap<u64, &'a Call>,
}

fn walk<'a>(facts: &Facts<'a>, of_one: &[&Fact<'a>]) -> Vec<Contradiction<'a>> {
    let mut walk = Walk::default();
    let mut found = Vec::new();
    for fact in of_one {
        if let Some(token) = facts.current(fact) {
            found.extend(walk.contradicts(fact, token));
            if token > walk.newest {
                (walk.newest, walk.newest_shown_by) = (token, Some(fact.call));
            }
        }
        if let Some(token) = walk.ended_by(facts, fact) {
            walk.over.entry(token).or_insert(fact.call);
        }
    }
    found
}

impl<'a> Walk<'a> {
    fn contradicts(&self, fact: &Fact<'a>, token: u64) -> Option<Contradiction<'a>> {
        let contradiction = |because, text| Some(Contradiction { fact: fact.clone(), because, text });
        if let (true, Some(newer)) = (token < self.newest, self.newest_shown_by) {
            let text = format!(
                "{} at {}: token {token} is shown as current after token {}",
                fact.resource, fact.at, self.newest
            );
            return contradiction(newer, text);
        }
        if let Some(end) = self.over.get(&token) {
            let text =
                format!("{} at {}: token {token} is shown as current after its end", fact.resource, fact.at);
            return contradiction(end, text);
        }
        None
    }

    /// The lease that is over from this fact on.
    fn ended_by(&self, facts: &Facts<'_>, fact: &Fact<'_>) -> Option<u64> {
        match &fact.told {
            Told::Released { .. } => facts.lease_meant(&fact.call.op).map(|lease| lease.token),
            Told::Status { held: None, .. } => (self.newest > 0).then_some(self.newest),
            Told::Refused(refused) if refused.code == "lease_ended" => {
                let meant = facts.lease_meant(&fact.call.op).map(|lease| lease.token);
                meant.or(refused.token)
            }
            _ => None,
        }
    }
}
