//! What must hold: one file for each property.
//!
//! Owns: the properties that a load shows, each under the name of its file. Those of a history are the oracle's, which
//! knows only what clients saw; here they are put beside what was committed, which only a simulator sees. Never: a verdict
//! that is open: answers are replayed in the order that their own positions give, so nothing is searched, nor given up.
//!
//! What nodes show while they run (`s1_one_state`, `s1_one_history`, `l4_serves`, `l4_heals`, `node_lives`) is looked at
//! in `world/observe.rs` and `world/lives.rs`; what they show at the moment when they apply an entry, in
//! `invariants/watching.rs`; that damage is found, in `faults/flipped_bit.rs`.

mod asked_once;
pub(crate) mod beliefs;
mod committed;
mod every_answer;
mod l1_hand_over;
mod l2_one_answer;
mod l3_waiters_leave;
mod l4_goes_on_serving;
pub(crate) mod l4_new_leader;
mod lost_wake_up;
#[cfg(kunci_plants)]
mod one_leader;
mod policy;
pub(crate) mod renewing_holder;
mod s1_one_holder;
mod s2_tokens;
mod s3_proof;
mod s4_quorum;
mod s5_one_effect;
mod s6_order;
mod s7_lease_time;
mod s8_reads;
mod s9_fence;
pub(crate) mod watching;

use crate::workload::Write;
use crate::world::World;
use committed::Committed;
use kunci_oracle::{Breach, Call, judge_in_order};
use std::ops::Range;
use watching::Watched;

/// What a load leaves to be judged.
pub(crate) struct Gathered {
    /// Every call of the HTTP doors' clients.
    pub(crate) calls: Vec<Call>,
    /// Every write to what locks protect.
    pub(crate) writes: Vec<Write>,
    /// Meanwhile nothing was at fault, in us of the world.
    pub(crate) well: Option<Range<u64>>,
}

/// The same, with what the oracle and the nodes say.
struct Case<'a> {
    gathered: &'a Gathered,
    breaches: &'a [Breach],
    committed: &'a Committed,
    watched: &'a Watched,
}

/// Something that isn't as it has to be.
struct Found {
    text: String,
    /// The numbers of the calls that show it.
    calls: Vec<u64>,
}

impl Found {
    fn new(text: impl Into<String>, calls: &[&Call]) -> Self {
        Self { text: text.into(), calls: calls.iter().map(|call| call.number).collect() }
    }
}

impl Case<'_> {
    /// What the oracle found against one of its rules.
    fn breaches_of(&self, rule: &str) -> Vec<Found> {
        let of_rule = self.breaches.iter().filter(|breach| breach.rule == rule);
        of_rule.map(|breach| Found { text: breach.text.clone(), calls: breach.calls.clone() }).collect()
    }

    fn calls(&self) -> &[Call] {
        &self.gathered.calls
    }
}

/// A property and its check.
type Property = (&'static str, fn(&Case<'_>) -> Vec<Found>);

/// Every property of a load.
const ALL: [Property; 16] = [
    ("s1_one_holder", s1_one_holder::check),
    ("s2_tokens", s2_tokens::check),
    ("s3_proof", s3_proof::check),
    ("s4_quorum", s4_quorum::check),
    ("s5_one_effect", s5_one_effect::check),
    ("s6_order", s6_order::check),
    ("s7_lease_time", s7_lease_time::check),
    ("s8_reads", s8_reads::check),
    ("s9_fence", s9_fence::check),
    ("every_answer", every_answer::check),
    ("l1_hand_over", l1_hand_over::check),
    ("l2_one_answer", l2_one_answer::check),
    ("l3_waiters_leave", l3_waiters_leave::check),
    ("l4_goes_on_serving", l4_goes_on_serving::check),
    ("lost_wake_up", lost_wake_up::check),
    ("policy", policy::check),
];

/// Of one property so many breaches are told.
const TOLD_MAX: usize = 5;

/// Judges everything that a load left.
pub(crate) fn judge(world: &World, gathered: &Gathered) {
    let (summary, breaches) = judge_in_order(&gathered.calls);
    let committed = Committed::of(world);
    let watched = world.watched();
    let case = Case { gathered, breaches: &breaches, committed: &committed, watched: &watched };
    world.tell(|| format!("judged: {summary}; {} writes", gathered.writes.len()));
    for (property, check) in ALL {
        for found in check(&case).iter().take(TOLD_MAX) {
            world.broken(property, || told(found, &gathered.calls));
        }
    }
}

/// A breach with the calls that show it: who asked whom what, when, and what the answer was.
fn told(found: &Found, calls: &[Call]) -> String {
    let mut text = found.text.clone();
    for number in &found.calls {
        let Some(call) = usize::try_from(*number).ok().and_then(|number| calls.get(number)) else { continue };
        let position = call.answer().and_then(|answer| answer.position).map(|at| format!(" at {at}"));
        text.push_str(&format!(
            "\n    {:.3} to {:.3} s: client {} asks n{}: {:?}: {:?}{}",
            seconds(call.began_us),
            seconds(call.ended_us),
            call.client,
            call.node,
            call.op,
            call.outcome,
            position.unwrap_or_default(),
        ));
    }
    text
}

fn seconds(us: u64) -> f64 {
    std::time::Duration::from_micros(us).as_secs_f64()
}
