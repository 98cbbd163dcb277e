//! Bugs in how an entry is applied.

use super::{Plant, as_drawn};
use kunci_core::LockTable;
use kunci_core::command::{Acquire, Command, Entry, ForceRelease, Proof};
use kunci_core::reply::{AcquireRefusal, AcquireReply, Applied, Reply, Told};
use kunci_process::Process;
use kunci_replica::planted::{Planted, plant};
use kunci_types::{LockDelay, Owner, Reason, RequestId, Revision, Wait};
use std::rc::Rc;

pub(super) static ALL: &[Plant] = &[
    Plant {
        name: "expiry_by_local_clock",
        what: "one node applies entries at the time of its own clock",
        breaks: &["s1_one_state", "s1_one_history"],
        aim: as_drawn,
        begin: || plant(Rc::new(Commands(local_clock))),
    },
    Plant {
        name: "request_id_ignored",
        what: "every call of an acquire is a request of its own",
        breaks: &["s5_one_effect"],
        aim: as_drawn,
        begin: || plant(Rc::new(Commands(|_, entry| acquires(entry, request_id_of_call)))),
    },
    Plant {
        name: "granted_after_cancel",
        what: "a cancelled waiter stays in the queue",
        breaks: &["s5_one_effect", "s6_order", "every_answer", "s8_reads"],
        aim: as_drawn,
        begin: || plant(Rc::new(Commands(cancels_nothing))),
    },
    Plant {
        name: "late_release_ends_another",
        what: "a release ends whatever lease its resource has",
        breaks: &["s3_proof", "s1_one_holder", "s7_lease_time", "s8_reads"],
        aim: as_drawn,
        begin: || plant(Rc::new(Commands(releases_any))),
    },
    Plant {
        name: "lock_delay_ignored",
        what: "no resource stays closed after a lease has expired",
        breaks: &["s7_lease_time"],
        aim: as_drawn,
        begin: || plant(Rc::new(Commands(|_, entry| acquires(entry, without_delay)))),
    },
    Plant {
        name: "lease_taken_away",
        what: "a try ends the lease that stands in its way, now and then",
        breaks: &["s7_lease_time", "one_believes", "renewing_holder"],
        aim: as_drawn,
        begin: || plant(Rc::new(LeaseTakenAway)),
    },
    Plant {
        name: "other_holder_shown",
        what: "a refused try is told of another holder",
        breaks: &["s8_reads"],
        aim: as_drawn,
        begin: || plant(Rc::new(Answers(other_holder))),
    },
    Plant {
        name: "token_of_another",
        what: "a grant is told with the token before its own",
        breaks: &["s2_tokens", "s4_quorum"],
        aim: as_drawn,
        begin: || plant(Rc::new(Answers(token_before))),
    },
    Plant {
        name: "answer_never_sent",
        what: "a waiter that is served isn't told, now and then",
        breaks: &["l2_one_answer"],
        aim: as_drawn,
        begin: || plant(Rc::new(Answers(no_answer))),
    },
];

/// Applies other commands than those of the entry.
struct Commands(fn(&LockTable, &mut Entry));

impl Planted for Commands {
    fn apply(&self, table: &mut LockTable, entry: &Entry) -> Applied {
        let mut entry = entry.clone();
        (self.0)(table, &mut entry);
        table.apply(&entry)
    }
}

/// Says something else than what came of an entry.
struct Answers(fn(&mut Applied));

impl Planted for Answers {
    fn apply(&self, table: &mut LockTable, entry: &Entry) -> Applied {
        let mut applied = table.apply(entry);
        (self.0)(&mut applied);
        applied
    }
}

fn local_clock(_: &LockTable, entry: &mut Entry) {
    if Process::current().is_some_and(|process| process.name().starts_with("n2.")) {
        entry.now = entry.now.plus_ms(300);
    }
}

fn acquires(entry: &mut Entry, change: fn(&mut Acquire)) {
    for command in &mut entry.commands {
        if let Command::Acquire(acquire) = command {
            change(acquire);
        }
    }
}

fn without_delay(acquire: &mut Acquire) {
    acquire.lock_delay = LockDelay::from_ms(0);
}

fn request_id_of_call(acquire: &mut Acquire) {
    let call: String = format!("{:?}", acquire.attempt).chars().filter(char::is_ascii_alphanumeric).collect();
    if let Ok(id) = RequestId::parse(&format!("{}-{call}", acquire.request_id.as_str())) {
        acquire.request_id = id;
    }
}

fn cancels_nothing(_: &LockTable, entry: &mut Entry) {
    for command in &mut entry.commands {
        if let Command::Cancel(cancel) = command
            && let Ok(other) = RequestId::parse(&format!("{}-not", cancel.request_id.as_str()))
        {
            cancel.request_id = other;
        }
    }
}

fn releases_any(table: &LockTable, entry: &mut Entry) {
    for command in &mut entry.commands {
        if let Command::Release(release) = command
            && let Some(current) = table.current(&release.resource)
        {
            release.proof = Proof::LeaseId(current.lease_id);
        }
    }
}

struct LeaseTakenAway;

impl Planted for LeaseTakenAway {
    fn apply(&self, table: &mut LockTable, entry: &Entry) -> Applied {
        let in_the_way = entry.commands.iter().find_map(|command| match command {
            Command::Acquire(acquire) if matches!(acquire.wait, Wait::Try) => {
                Some((acquire.resource.clone(), table.current(&acquire.resource)?))
            }
            _ => None,
        });
        let Some((resource, current)) = in_the_way.filter(|(_, grant)| grant.token.get().is_multiple_of(3))
        else {
            return table.apply(entry);
        };
        let Ok(reason) = Reason::parse("planted") else { return table.apply(entry) };
        let force = ForceRelease { resource, token: current.token, reason };
        let first = table.apply(&Entry::new(entry.now, vec![Command::ForceRelease(force)]));
        let mut applied = table.apply(entry);
        applied.events.splice(0..0, first.events);
        applied.answers.extend(first.answers);
        applied
    }
}

fn other_holder(applied: &mut Applied) {
    for reply in &mut applied.replies {
        if let Reply::Acquire(AcquireReply::Refused(AcquireRefusal::Held(held))) = &mut reply.value
            && let Ok(somebody) = Owner::parse("somebody")
        {
            held.holder = somebody;
        }
    }
}

fn token_before(applied: &mut Applied) {
    for reply in &mut applied.replies {
        if let Reply::Acquire(AcquireReply::Granted(grant)) = &mut reply.value
            && grant.told == Told::First
            && let Some(before) = Revision::new(grant.token.get().saturating_sub(1))
        {
            grant.token = before.token();
        }
    }
}

fn no_answer(applied: &mut Applied) {
    applied.answers.retain(|answer| !answer.reply.revision.get().is_multiple_of(3));
}
