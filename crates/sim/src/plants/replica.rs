//! Bugs in what surrounds the table: the log on its disk, and the leader's duties.

use super::{Plant, as_drawn};
use kunci_replica::planted::{Bug, plant_bug};
use std::time::Duration;

pub(super) static ALL: &[Plant] = &[
    Plant {
        name: "acknowledged_before_sync",
        what: "followers say that an entry is on their disks before it is",
        breaks: &["s4_quorum"],
        aim: as_drawn,
        begin: || plant_bug(Bug::AcknowledgedBeforeSync),
    },
    Plant {
        name: "vote_not_durable",
        what: "a vote is kept in memory alone, so that a node that died gives another one in the same term",
        breaks: &["one_leader"],
        aim: |plan| plan.fault_every = Duration::from_millis(500),
        begin: || plant_bug(Bug::VoteForgotten),
    },
    Plant {
        name: "expiry_late",
        what: "a leader looks after what is due only once a second",
        breaks: &["l1_hand_over"],
        aim: as_drawn,
        begin: || plant_bug(Bug::ExpiryLate),
    },
    Plant {
        name: "take_over_late",
        what: "a new leader serves only after some seconds",
        breaks: &["l4_new_leader"],
        aim: as_drawn,
        begin: || plant_bug(Bug::TakeOverLate),
    },
];
