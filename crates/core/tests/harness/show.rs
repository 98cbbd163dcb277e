//! Answers, events and readings as lines of a transcript.

use super::names::Names;
use super::parse::resource;
use kunci_core::LockTable;
use kunci_core::event::{Change, Event, EventKind};
use kunci_core::reply::{
    AbandonReply, AcquireRefusal, AcquireReply, Applied, CancelReply, DetachReply, ForceReleaseReply, Grant,
    HeldBy, Last, LeaseEnd, NotHolder, OverLimit, Placed, RaiseRevisionReply, ReleaseReply, RenewReply,
    Reply, SetPolicyReply, Told,
};
use kunci_core::view::{Listed, Status};
use std::fmt::Write;

/// Everything that an entry brought about: replies, answers to waiting calls, events.
pub(crate) fn applied(applied: &Applied, names: &Names) -> String {
    let mut output = String::new();
    for Placed { value, place, revision } in &applied.replies {
        writeln!(output, "   -> {} [{place} r{revision}]", reply(value, names)).unwrap();
    }
    for answer in &applied.answers {
        let Placed { value, place, revision } = &answer.reply;
        let call = names.of_attempt(answer.attempt);
        writeln!(output, "   call {call} -> {} [{place} r{revision}]", acquire(value, names)).unwrap();
    }
    for event in &applied.events {
        writeln!(output, "   {}", show_event(event)).unwrap();
    }
    output
}

fn reply(reply: &Reply, names: &Names) -> String {
    match reply {
        Reply::Acquire(reply) => acquire(reply, names),
        Reply::Renew(replies) => replies.iter().map(|reply| renew(*reply)).collect::<Vec<_>>().join(" + "),
        Reply::Release(ReleaseReply::Released(told)) => format!("released{}", again(*told)),
        Reply::Release(ReleaseReply::NotHolder(why)) => format!("refused: {}", not_holder(*why)),
        Reply::Cancel(reply) => cancel(reply, names),
        Reply::Detach(reply) => match reply {
            DetachReply::Detached { position } => format!("detached position={position}"),
            DetachReply::Dropped => "dropped".to_owned(),
            DetachReply::Granted(grant) => show_grant(grant, names),
            DetachReply::Stale => "stale".to_owned(),
        },
        Reply::Abandon(AbandonReply::Abandoned) => "abandoned".to_owned(),
        Reply::Abandon(AbandonReply::Stale) => "stale".to_owned(),
        Reply::ForceRelease(reply) => match reply {
            ForceReleaseReply::Forced { owner } => format!("forced owner={owner}"),
            ForceReleaseReply::OtherToken { held_by } => format!("refused: other token, {}", held(held_by)),
            ForceReleaseReply::NotHeld => "refused: not held".to_owned(),
        },
        Reply::TakeOver => "taken over".to_owned(),
        Reply::SetPolicy(reply) => match reply {
            SetPolicyReply::Changed => "changed".to_owned(),
            SetPolicyReply::OtherRevision { current } => format!("refused: current revision is {current}"),
            SetPolicyReply::Invalid(invalid) => format!("refused: {invalid}"),
        },
        Reply::RaiseRevision(reply) => match reply {
            RaiseRevisionReply::Raised => "raised".to_owned(),
            RaiseRevisionReply::AlreadyAbove => "already above".to_owned(),
            RaiseRevisionReply::TooHigh { max } => format!("refused: at most {max}"),
        },
        Reply::RaiseFeatureLevel(level) => format!("level {level}"),
    }
}

fn acquire(reply: &AcquireReply, names: &Names) -> String {
    match reply {
        AcquireReply::Granted(grant) => show_grant(grant, names),
        AcquireReply::Queued => "queued".to_owned(),
        AcquireReply::Refused(refusal) => match refusal {
            AcquireRefusal::Held(by) => format!("refused: {}", held(by)),
            AcquireRefusal::LockDelay { remaining_ms } => format!("refused: lock-delay left={remaining_ms}"),
            AcquireRefusal::TimedOut(told) => format!("refused: timed out{}", again(*told)),
            AcquireRefusal::Cancelled(told) => format!("refused: cancelled{}", again(*told)),
            AcquireRefusal::Superseded => "refused: superseded".to_owned(),
            AcquireRefusal::LeaseEnded { how, token } => {
                format!("refused: lease {} token={token}", end(*how))
            }
            AcquireRefusal::RequestIdReused => "refused: request id reused".to_owned(),
            AcquireRefusal::OutOfPolicy(out_of_policy) => format!("refused: {out_of_policy}"),
            AcquireRefusal::OverLimit(limit) => format!("refused: {}", over_limit(*limit)),
        },
    }
}

fn renew(reply: RenewReply) -> String {
    match reply {
        RenewReply::Renewed { remaining_ms, last } => {
            let last = match last {
                Last::No => "",
                Last::Final => " final",
            };
            format!("renewed left={remaining_ms}{last}")
        }
        RenewReply::NotHolder(why) => format!("refused: {}", not_holder(why)),
        RenewReply::OutOfPolicy(out_of_policy) => format!("refused: {out_of_policy}"),
    }
}

fn cancel(reply: &CancelReply, names: &Names) -> String {
    match reply {
        CancelReply::Cancelled(told) => format!("cancelled{}", again(*told)),
        CancelReply::Granted(grant) => show_grant(grant, names),
        CancelReply::LeaseEnded { how, token } => format!("lease {} token={token}", end(*how)),
        CancelReply::RequestIdReused => "refused: request id reused".to_owned(),
        CancelReply::OverLimit(limit) => format!("refused: {}", over_limit(*limit)),
    }
}

fn show_grant(grant: &Grant, names: &Names) -> String {
    assert!(grant.remaining_ms > 0, "no grant is over when it is answered (C01)");
    format!(
        "granted token={} lease={} left={} ttl={}{}",
        grant.token,
        names.of_lease(&grant.lease_id),
        grant.remaining_ms,
        grant.ttl_ms,
        again(grant.told)
    )
}

fn held(by: &HeldBy) -> String {
    format!("held by {} token={} left={} queue={}", by.holder, by.token, by.remaining_ms, by.queue_length)
}

fn not_holder(why: NotHolder) -> &'static str {
    match why {
        NotHolder::Ended(how) => end(how),
        NotHolder::UnknownLease => "unknown lease",
        NotHolder::ProofNotAllowed => "proof not allowed",
    }
}

fn end(how: LeaseEnd) -> &'static str {
    match how {
        LeaseEnd::Released => "released",
        LeaseEnd::Expired => "expired",
        LeaseEnd::Forced => "forced",
        LeaseEnd::Abandoned => "abandoned",
    }
}

fn over_limit(limit: OverLimit) -> String {
    let (of, max) = match limit {
        OverLimit::WaitersOfResource { max } => ("waiters of the resource", max),
        OverLimit::WaitersOfNamespace { max } => ("waiters of the namespace", max),
        OverLimit::Waiters { max } => ("waiters", max),
        OverLimit::LeasesOfNamespace { max } => ("leases of the namespace", max),
        OverLimit::Leases { max } => ("leases", max),
        OverLimit::Outcomes { max } => ("outcomes", max),
    };
    format!("over limit, {of} at most {max}")
}

fn again(told: Told) -> &'static str {
    match told {
        Told::First => "",
        Told::Again => " again",
    }
}

fn show_event(event: &Event) -> String {
    let about = match &event.kind {
        EventKind::Resource { resource, owner, change } => {
            format!("{resource} {owner}: {}", show_change(change))
        }
        EventKind::PolicyChanged => "policy changed".to_owned(),
        EventKind::RevisionRaised => "revision raised".to_owned(),
    };
    format!("event {} {about}", event.revision)
}

fn show_change(change: &Change) -> String {
    match change {
        Change::Queued => "queued".to_owned(),
        Change::Granted { ttl_ms } => format!("granted ttl={ttl_ms}"),
        Change::Released { token } => format!("released token={token}"),
        Change::Expired { token } => format!("expired token={token}"),
        Change::Forced { token, reason } => format!("forced token={token} reason={reason}"),
        Change::Abandoned { token } => format!("abandoned token={token}"),
        Change::TimedOut => "timed out".to_owned(),
        Change::Cancelled => "cancelled".to_owned(),
        Change::Dropped => "dropped".to_owned(),
    }
}

/// `? status <resource>`, `? queue <resource>`, `? list <prefix> <after> <limit>`, `? hot <limit>`, `? totals`.
pub(crate) fn reading(table: &LockTable, reading: &str) -> String {
    let words: Vec<&str> = reading.split(' ').collect();
    let mut output = String::new();
    match words[..] {
        ["status", name] => writeln!(output, "   {}", status(&table.status(&resource(name)))).unwrap(),
        ["queue", name] => {
            for view in table.queue(&resource(name)) {
                let attached = if view.attached { "attached" } else { "detached" };
                let (position, owner) = (view.position, view.owner);
                let (waited, left) = (view.waited_ms, view.wait_remaining_ms);
                writeln!(output, "   {position} {owner} waited={waited} left={left} {attached}").unwrap();
            }
        }
        ["list", prefix, after, limit] => {
            let after = Some(after).filter(|after| *after != "-");
            let prefix = if prefix == "*" { "" } else { prefix };
            list(&mut output, &table.list(prefix, after, limit.parse().unwrap()));
        }
        ["hot", limit] => list(&mut output, &table.hot(limit.parse().unwrap())),
        ["totals"] => {
            let (held, waiters, requests) = (table.held_count(), table.waiter_count(), table.request_count());
            let next = table.next_deadline().map_or("never".to_owned(), |at| format!("{at:?}"));
            writeln!(output, "   held={held} waiters={waiters} requests={requests} next={next}").unwrap();
        }
        _ => panic!("no such reading: {reading}"),
    }
    output
}

fn list(output: &mut String, listed: &[Listed]) {
    for Listed { resource, status: found } in listed {
        writeln!(output, "   {resource} {}", status(found)).unwrap();
    }
}

fn status(status: &Status) -> String {
    match status {
        Status::Held(view) => format!(
            "held by {} token={} left={} held={} ttl={} queue={} metadata={:?}",
            view.owner,
            view.token,
            view.remaining_ms,
            view.held_ms,
            view.ttl_ms,
            view.queue_length,
            view.metadata
        ),
        Status::Closed { remaining_ms, queue_length } => {
            format!("closed left={remaining_ms} queue={queue_length}")
        }
        Status::Free { queue_length } => format!("free queue={queue_length}"),
    }
}
