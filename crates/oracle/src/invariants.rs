//! What every history must keep to.
//!
//! Owns: one file for each guarantee, and how a breach reads. Never: a look at the servers; only what clients saw
//! counts.

mod currency;
mod facts;
mod lifetime;
mod linear;
mod log_order;
mod replay;
mod s1_one_holder;
mod s2_tokens;
mod s3_proof;
mod s4_durable;
mod s5_one_effect;
mod s6_order;
mod s7_lease_time;
mod s8_reads;
#[cfg(test)]
mod script;
mod tampered;
mod timing;

pub use tampered::{Lie, tell_lies};
pub use timing::{HandOver, hand_overs};

use crate::history::Call;
use facts::Facts;
use std::fmt;

/// A rule that a history breaks, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Breach {
    /// The rule's name: a guarantee of the contract, or what the history itself must keep to.
    pub rule: &'static str,
    /// What is wrong.
    pub text: String,
    /// The numbers of the calls that show it.
    pub calls: Vec<u64>,
}

impl Breach {
    fn new(rule: &'static str, text: impl Into<String>, calls: &[&Call]) -> Self {
        Self { rule, text: text.into(), calls: calls.iter().map(|call| call.number).collect() }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (calls {:?})", self.rule, self.text, self.calls)
    }
}

/// What a history amounts to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// All calls.
    pub calls: usize,
    /// Those that were answered.
    pub answered: usize,
    /// Those that may have taken effect without an answer.
    pub unknown: usize,
    /// Leases that somebody was told of.
    pub grants: usize,
    /// Waiters that could be followed from the queue to their grant.
    pub followed: usize,
    /// From the end of a lease that lapsed to the next waiter's answer, at most, in ms: L1.
    pub hand_over_ms: u64,
    /// Resources whose histories the linearizability search took.
    pub searched: usize,
    /// Resources that it gave up on.
    pub given_up: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, answered, unknown, grants, followed, hand_over_ms, searched, given_up } = self;
        write!(f, "{calls} calls, {answered} answered, {unknown} unknown; {grants} grants; ")?;
        write!(
            f,
            "{followed} waiters followed; lapsed leases reached the next in {hand_over_ms} ms at most; "
        )?;
        write!(f, "{searched} resources searched for an order, {given_up} given up")
    }
}

/// Checks everything. The seed chooses the samples of the search.
#[must_use]
pub fn judge(calls: &[Call], seed: u64) -> (Summary, Vec<Breach>) {
    let facts = Facts::read(calls);
    let mut breaches = breaches(&facts);
    let search = linear::search(&facts, seed);
    breaches.extend(search.breaches);
    let summary = Summary { searched: search.searched, given_up: search.given_up, ..summary(calls, &facts) };
    (summary, breaches)
}

/// Checks everything in the order that the answers' own positions give, and so without a search: no call stays
/// undecided.
#[must_use]
pub fn judge_in_order(calls: &[Call]) -> (Summary, Vec<Breach>) {
    let facts = Facts::read(calls);
    (summary(calls, &facts), breaches(&facts))
}

fn summary(calls: &[Call], facts: &Facts<'_>) -> Summary {
    Summary {
        calls: calls.len(),
        answered: calls.iter().filter(|call| call.answer().is_some()).count(),
        unknown: calls.iter().filter(|call| call.may_have_applied() && call.answer().is_none()).count(),
        grants: facts.leases().count(),
        hand_over_ms: timing::of_facts(facts).iter().map(|found| found.delay_ms).max().unwrap_or_default(),
        followed: s6_order::followed_count(facts),
        searched: 0,
        given_up: 0,
    }
}

/// Every breach of everything but the search.
fn breaches(facts: &Facts<'_>) -> Vec<Breach> {
    let checks = [
        facts::unreadable,
        log_order::check,
        replay::check,
        s1_one_holder::check,
        s2_tokens::check,
        s3_proof::check,
        s4_durable::check,
        s5_one_effect::check,
        s6_order::check,
        s7_lease_time::check,
        s8_reads::check,
    ];
    checks.iter().flat_map(|check| check(facts)).collect()
}
