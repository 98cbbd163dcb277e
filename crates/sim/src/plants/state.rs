//! Bugs in the state itself: in what a table does, and in what comes back from a snapshot.

use super::{Plant, as_drawn};
use crate::plan::Plan;
use kunci_core::LockTable;
use kunci_core::command::Entry;
use kunci_core::planted::{self, Bug};
use kunci_core::reply::Applied;
use kunci_replica::planted::{Planted, plant};
use std::rc::Rc;
use std::time::Duration;

/// How far the token falls back.
const BACK: u64 = 40;

pub(super) static ALL: &[Plant] = &[
    Plant {
        name: "wake_up_lost",
        what: "a resource that becomes free isn't handed on, now and then",
        // The table's own invariants find it first, and stop the node.
        breaks: &["lost_wake_up", "s6_order", "no_panic", "node_lives"],
        aim: as_drawn,
        begin: || planted::plant(Bug::WakeUpLost),
    },
    Plant {
        name: "wake_up_lost_unseen",
        what: "the same, and the table's own invariants don't see it",
        breaks: &["lost_wake_up"],
        aim: as_drawn,
        begin: || planted::plant(Bug::WakeUpLostUnseen),
    },
    Plant {
        name: "waiters_stay",
        what: "a waiter whose client is gone keeps its place until its wait is over",
        breaks: &["l3_waiters_leave"],
        aim: |plan| plan.storm = Duration::from_secs(60),
        begin: || planted::plant(Bug::WaitersStay),
    },
    Plant {
        name: "last_waiter_first",
        what: "the waiter that came last is served first",
        breaks: &["s6_order"],
        aim: as_drawn,
        begin: || planted::plant(Bug::LastFirst),
    },
    Plant {
        name: "grace_without_bound",
        what: "a new leader gives every lease an hour",
        breaks: &["s8_reads", "l1_hand_over", "every_answer", "l3_waiters_leave"],
        aim: as_drawn,
        begin: || planted::plant(Bug::GraceWithoutBound),
    },
    Plant {
        name: "outcomes_forgotten",
        what: "a request is forgotten as soon as its lease has ended",
        breaks: &["s5_one_effect"],
        aim: as_drawn,
        begin: || plant(Rc::new(OutcomesForgotten)),
    },
    Plant {
        name: "outcomes_not_in_snapshot",
        what: "a snapshot doesn't hold the requests that have ended",
        breaks: &["s1_one_state", "s1_one_history", "s5_one_effect"],
        aim: many_snapshots,
        begin: || plant(Rc::new(Restored(LockTable::forget_outcomes))),
    },
    Plant {
        name: "waiters_not_in_snapshot",
        what: "a snapshot doesn't hold the waiters",
        breaks: &["s1_one_state", "s1_one_history", "s6_order"],
        aim: many_snapshots,
        begin: || plant(Rc::new(Restored(LockTable::forget_waiters))),
    },
    Plant {
        name: "token_falls_back_after_restore",
        what: "a node that restored a snapshot counts tokens from an older place",
        breaks: &["s1_one_state", "s1_one_history", "s2_tokens"],
        aim: many_snapshots,
        begin: || plant(Rc::new(Restored(|table| table.set_revision_back(BACK)))),
    },
];

/// Nodes are behind a snapshot whenever they were away.
fn many_snapshots(plan: &mut Plan) {
    plan.snapshot_every_bytes = 1 << 10;
    plan.entries_kept = 0;
    plan.fault_every = Duration::from_secs(1);
}

struct OutcomesForgotten;

impl Planted for OutcomesForgotten {
    fn apply(&self, table: &mut LockTable, entry: &Entry) -> Applied {
        let applied = table.apply(entry);
        table.forget_outcomes();
        applied
    }
}

struct Restored(fn(&mut LockTable));

impl Planted for Restored {
    fn restored(&self, mut table: LockTable) -> LockTable {
        (self.0)(&mut table);
        table
    }
}
