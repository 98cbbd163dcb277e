//! A search for one order of all calls on a resource that a single lock could have answered so: linearizability, by
//! stateright's tester, over samples.
//!
//! It knows nothing of positions, so it also checks the checks. A call without an answer may have taken effect at any
//! time since, or never. Time is not in it: a lease may lapse whenever nothing says that its holder ended it.

use super::Breach;
use super::facts::Facts;
use crate::history::{Call, Op, Told};
use crate::random::Random;
use stateright::semantics::{ConsistencyTester as _, LinearizabilityTester, SequentialSpec};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

/// Longer histories of one resource aren't taken: the search is exponential.
const CALLS_MAX: usize = 45;
/// Shorter ones hold no surprises.
const CALLS_MIN: usize = 3;
/// So many resources at most.
const SAMPLES: usize = 30;
/// Steps that the search may take for one resource before it gives up.
const STEPS_MAX: u64 = 20_000;

/// What came of it.
pub(super) struct Search {
    pub(super) breaches: Vec<Breach>,
    pub(super) searched: usize,
    pub(super) given_up: usize,
}

/// Takes a sample of the resources.
pub(super) fn search(facts: &Facts<'_>, seed: u64) -> Search {
    let mut by_resource: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in facts.calls() {
        if let Some(resource) = call.op.resource().filter(|_| !matches!(call.op, Op::Queue { .. })) {
            by_resource.entry(resource).or_default().push(call);
        }
    }
    let mut samples: Vec<_> =
        by_resource.into_iter().filter(|(_, calls)| (CALLS_MIN..=CALLS_MAX).contains(&calls.len())).collect();
    let mut random = Random::new(seed, 77);
    samples.sort_by_cached_key(|_| random.bits());
    let mut search = Search { breaches: Vec::new(), searched: 0, given_up: 0 };
    for (resource, calls) in samples.into_iter().take(SAMPLES) {
        match is_linearizable(facts, &calls) {
            Some(true) => search.searched += 1,
            Some(false) => {
                let text =
                    format!("{resource}: no order of its {} calls explains their answers", calls.len());
                search.breaches.push(Breach::new("linearizability", text, &calls));
            }
            None => search.given_up += 1,
        }
    }
    search
}

/// Whether one lock could have answered so; nothing when the search took too long.
fn is_linearizable(facts: &Facts<'_>, calls: &[&Call]) -> Option<bool> {
    let lock = Lock {
        holder: Holder::Nobody,
        newest: 0,
        may_lapse: Rc::new(may_lapse(facts, calls)),
        steps: Rc::new(Cell::new(0)),
    };
    let mut tester = LinearizabilityTester::new(lock);
    let mut events = Vec::new();
    for call in calls {
        let Some((asked, told)) = as_lock_call(facts, call) else { continue };
        if told.is_none() && matches!(asked, Asked::Renew(_) | Asked::Look) {
            continue; // Whether it took effect makes no difference.
        }
        events.push((call.began_us, 1, call.number, Event::Asked(asked)));
        if let Some(told) = told {
            events.push((call.ended_us, 0, call.number, Event::Told(told)));
        }
    }
    events.sort_by_key(|(at, kind, number, _)| (*at, *kind, *number));
    for (_, _, number, event) in events {
        // Each call is a thread of its own: what its client did before shows in the times.
        match event {
            Event::Asked(asked) => drop(tester.on_invoke(number, asked)),
            Event::Told(told) => drop(tester.on_return(number, told)),
        }
    }
    // The tester has no way to stop early: a panic without words, caught here, is that way.
    catch_unwind(AssertUnwindSafe(|| tester.is_consistent())).ok()
}

enum Event {
    Asked(Asked),
    Told(Heard),
}

/// A call as the lock sees it.
#[derive(Clone, Debug, PartialEq)]
enum Asked {
    Acquire,
    Renew(u64),
    Release(u64),
    Look,
}

/// An answer as the lock gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Heard {
    /// This token is current.
    Current(u64),
    /// This token was current, and is over by this call.
    Ended(u64),
    /// This token isn't current.
    NotCurrent(u64),
    Free,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Holder {
    Nobody,
    /// A grant whose answer was lost.
    Somebody,
    Token(u64),
}

/// One lock.
#[derive(Clone, Debug)]
struct Lock {
    holder: Holder,
    newest: u64,
    may_lapse: Rc<BTreeSet<u64>>,
    steps: Rc<Cell<u64>>,
}

impl Lock {
    /// Counts a step, and ends the search when there were too many.
    fn step(&self) {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > STEPS_MAX {
            resume_unwind(Box::new("too many steps"));
        }
    }

    /// Whether nobody need hold it.
    fn may_be_free(&self) -> bool {
        match self.holder {
            Holder::Nobody | Holder::Somebody => true,
            Holder::Token(token) => self.may_lapse.contains(&token),
        }
    }

    fn is_current(&mut self, token: u64) -> bool {
        let is_new = token > self.newest;
        let fits = match self.holder {
            Holder::Token(holder) => holder == token || (is_new && self.may_lapse.contains(&holder)),
            Holder::Somebody | Holder::Nobody => is_new,
        };
        if fits {
            (self.holder, self.newest) = (Holder::Token(token), self.newest.max(token));
        }
        fits
    }
}

impl SequentialSpec for Lock {
    type Op = Asked;
    type Ret = Heard;

    /// Used for calls without an answer only: what they do if they do anything.
    fn invoke(&mut self, op: &Asked) -> Heard {
        self.step();
        match op {
            Asked::Acquire if self.may_be_free() => self.holder = Holder::Somebody,
            Asked::Release(token) if self.holder == Holder::Token(*token) => self.holder = Holder::Nobody,
            _ => {}
        }
        Heard::Free
    }

    fn is_valid_step(&mut self, op: &Asked, told: &Heard) -> bool {
        self.step();
        match (op, told) {
            // Only a grant makes a token current; others see one that a lost answer may have granted.
            (Asked::Acquire, Heard::Current(token)) => self.is_current(*token),
            (_, Heard::Current(token)) => self.holder != Holder::Nobody && self.is_current(*token),
            (_, Heard::Ended(token)) => {
                let was = self.is_current(*token);
                self.holder = Holder::Nobody;
                was
            }
            (_, Heard::NotCurrent(token)) => {
                if self.holder == Holder::Token(*token) {
                    let may_lapse = self.may_lapse.contains(token);
                    self.holder = Holder::Nobody;
                    return may_lapse;
                }
                true
            }
            (_, Heard::Free) => {
                let free = self.may_be_free();
                self.holder = Holder::Nobody;
                free
            }
        }
    }
}

/// Tokens whose leases no acknowledged release ended: time may have, at any moment.
fn may_lapse(facts: &Facts<'_>, calls: &[&Call]) -> BTreeSet<u64> {
    let mut tokens: BTreeSet<u64> =
        calls.iter().filter_map(|call| as_lock_call(facts, call)?.1).filter_map(token_of).collect();
    for call in calls {
        if let Some((_, Some(Heard::Ended(token)))) = as_lock_call(facts, call) {
            tokens.remove(&token);
        }
    }
    tokens
}

fn token_of(heard: Heard) -> Option<u64> {
    match heard {
        Heard::Current(token) | Heard::Ended(token) | Heard::NotCurrent(token) => Some(token),
        Heard::Free => None,
    }
}

/// Calls that say nothing of the holder, or took no effect for sure, are left out.
fn as_lock_call(facts: &Facts<'_>, call: &Call) -> Option<(Asked, Option<Heard>)> {
    let asked = match &call.op {
        Op::Acquire { .. } | Op::Cancel { .. } => Asked::Acquire,
        Op::Renew { .. } => Asked::Renew(facts.lease_meant(&call.op)?.token),
        Op::Release { .. } => Asked::Release(facts.lease_meant(&call.op)?.token),
        Op::Status { .. } => Asked::Look,
        Op::Queue { .. } | Op::List { .. } | Op::Policy | Op::ChangePolicy { .. } => return None,
    };
    let told = call.answer().and_then(|answer| Told::read(&call.op, answer).ok()).filter(Told::is_decided);
    let Some(told) = told else {
        return (call.may_have_applied() && !matches!(call.op, Op::Cancel { .. })).then_some((asked, None));
    };
    let heard = match told {
        Told::Granted { token, .. } => Heard::Current(token),
        Told::Renewed { .. } => Heard::Current(facts.lease_meant(&call.op)?.token),
        Told::Released { already } => {
            let token = facts.lease_meant(&call.op)?.token;
            if already { Heard::NotCurrent(token) } else { Heard::Ended(token) }
        }
        Told::Status { held: Some(held), .. } => Heard::Current(held.token),
        Told::Status { held: None, .. } => Heard::Free,
        Told::Refused(refused) if refused.code == "held" => {
            // It changes nothing: a look at the lock.
            return Some((Asked::Look, Some(Heard::Current(refused.held?.token))));
        }
        Told::Refused(refused) if refused.code == "lease_ended" => {
            let meant = facts.lease_meant(&call.op).map(|lease| lease.token);
            return Some((Asked::Look, Some(Heard::NotCurrent(meant.or(refused.token)?))));
        }
        // Queued on: it may be granted while nobody listens, as if its answer were lost.
        Told::Queued { .. } => return Some((asked, None)),
        _ => return None,
    };
    Some((asked, Some(heard)))
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    fn breaches(script: &Script) -> usize {
        let calls = script.calls();
        let search = search(&Facts::read(&calls), 1);
        assert_eq!(search.given_up, 0);
        search.breaches.len()
    }

    #[test]
    fn two_holders_at_once_have_no_order() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).grant("r", "b", 2, (11, 0));
        script.at(40, 50).released("r", 1, 3, (12, 0));

        assert_eq!(breaches(&script), 1);
    }

    #[test]
    fn a_stale_read_has_no_order() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).released("r", 1, 2, (11, 0));
        script.at(40, 50).status_held("r", "a", 1, (12, 0));

        assert_eq!(breaches(&script), 1);
    }

    #[test]
    fn a_grant_below_an_earlier_token_has_no_order() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 5, (10, 0));
        script.at(20, 30).released("r", 5, 6, (11, 0));
        script.at(40, 50).grant("r", "b", 4, (12, 0));

        assert_eq!(breaches(&script), 1);
    }

    #[test]
    fn calls_at_the_same_time_lapsed_leases_and_lost_answers_have_one() {
        let mut script = Script::new();
        script.at(0, 10).acquire_unknown("r", "a", 1);
        script.at(20, 30).status_held("r", "a", 1, (10, 0));
        script.at(35, 60).grant_after_wait("r", "b", 3, (12, 0));
        script.at(40, 50).release_unknown("r", 3);
        script.at(70, 80).grant("r", "c", 5, (13, 0));
        script.at(75, 90).status_held("r", "b", 3, (14, 0));

        assert_eq!(breaches(&script), 0);
    }
}
