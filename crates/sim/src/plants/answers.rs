//! Bugs in what a node says without asking the others.

use super::{Plant, as_drawn};
use kunci_core::LockTable;
use kunci_core::command::{Command, Entry, Proof};
use kunci_core::reply::{AcquireReply, Last, ReleaseReply, RenewReply, Reply, Told};
use kunci_replica::planted::{Alone, Planted, plant};
use std::cell::RefCell;
use std::rc::Rc;

pub(super) static ALL: &[Plant] = &[
    Plant {
        name: "grant_before_quorum",
        what: "a leader answers an acquire with what its own table would say, before anybody else has it",
        breaks: &["s4_quorum", "s1_one_holder", "s2_tokens"],
        aim: as_drawn,
        begin: || plant(Rc::new(GrantBeforeQuorum)),
    },
    Plant {
        name: "renewal_answered_alone",
        what: "a renewal is answered by the node that it came to, and never proposed",
        breaks: &["s7_lease_time", "one_believes", "renewing_holder", "s1_one_holder"],
        aim: as_drawn,
        begin: || plant(Rc::new(RenewalAlone)),
    },
    Plant {
        name: "long_leases_not_renewed",
        what: "renewals of leases that last for long come to nothing, and nobody is told",
        breaks: &["renewing_holder"],
        aim: as_drawn,
        begin: || plant(Rc::new(LongLeasesNotRenewed)),
    },
    Plant {
        name: "release_answered_alone",
        what: "a release is answered by the node that it came to, and never proposed",
        breaks: &["s4_quorum"],
        aim: as_drawn,
        begin: || plant(Rc::new(ReleaseAlone)),
    },
    Plant {
        name: "stale_read",
        what: "a read looks at a state of some reads ago",
        breaks: &["s8_reads"],
        aim: as_drawn,
        begin: || plant(Rc::new(StaleRead::default())),
    },
];

struct GrantBeforeQuorum;

impl Planted for GrantBeforeQuorum {
    fn answers_alone(&self, table: &LockTable, command: &Command) -> Option<Alone> {
        if !matches!(command, Command::Acquire(_)) {
            return None;
        }
        let entry = Entry::new(table.now(), vec![command.clone()]);
        let reply = table.clone().apply(&entry).replies.pop()?.value;
        let is_grant =
            matches!(&reply, Reply::Acquire(AcquireReply::Granted(grant)) if grant.told == Told::First);
        is_grant.then_some(Alone { reply: Some(reply), is_proposed: true })
    }
}

struct RenewalAlone;

impl Planted for RenewalAlone {
    fn answers_alone(&self, table: &LockTable, command: &Command) -> Option<Alone> {
        let Command::Renew(renew) = command else { return None };
        let replies = renew.leases.iter().map(|renewal| {
            let Proof::LeaseId(id) = renewal.proof else { return None };
            let current = table.current(&renewal.resource).filter(|grant| grant.lease_id == id)?;
            Some(RenewReply::Renewed { remaining_ms: current.ttl_ms, last: Last::No })
        });
        let replies: Option<Vec<RenewReply>> = replies.collect();
        Some(Alone { reply: Some(Reply::Renew(replies?)), is_proposed: false })
    }
}

/// Leases that last for longer than so many milliseconds.
const LONG_MS: u64 = 5_000;

struct LongLeasesNotRenewed;

impl Planted for LongLeasesNotRenewed {
    fn answers_alone(&self, table: &LockTable, command: &Command) -> Option<Alone> {
        let Command::Renew(renew) = command else { return None };
        let is_long = renew
            .leases
            .iter()
            .any(|renewal| table.current(&renewal.resource).is_some_and(|current| current.ttl_ms > LONG_MS));
        is_long.then_some(Alone { reply: None, is_proposed: false })
    }
}

struct ReleaseAlone;

impl Planted for ReleaseAlone {
    fn answers_alone(&self, table: &LockTable, command: &Command) -> Option<Alone> {
        let Command::Release(release) = command else { return None };
        let Proof::LeaseId(id) = release.proof else { return None };
        table.current(&release.resource).filter(|grant| grant.lease_id == id)?;
        Some(Alone { reply: Some(Reply::Release(ReleaseReply::Released(Told::First))), is_proposed: false })
    }
}

/// How many reads look at the same state.
const READS: u32 = 6;

#[derive(Default)]
struct StaleRead(RefCell<(u32, Option<LockTable>)>);

impl Planted for StaleRead {
    fn looks_at(&self, table: &LockTable) -> Option<LockTable> {
        let mut kept = self.0.borrow_mut();
        kept.0 += 1;
        if kept.0.is_multiple_of(READS) {
            kept.1 = Some(table.clone());
        }
        kept.1.clone()
    }
}
