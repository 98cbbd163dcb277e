//! From an applied entry to lines.
//!
//! Owns: which records an entry has, and in which order. Both follow from the entry alone, so a record's place (index of
//! the entry, number in it) is the same on every node and after every restart. What a setting leaves out keeps its number.

use super::Renewals;
use super::denied::Denied;
use super::line::{Line, Times, push_text};
use super::outcome::{self, Action, Why};
use super::wall_clock;
use kunci_api::PolicyBody;
use kunci_core::command::{Command, Entry, Proof};
use kunci_core::event::{Change, Event, EventKind, Mark};
use kunci_core::reply::{Placed, RaiseRevisionReply, RenewReply, Reply};
use kunci_replica::{Seen, SeenEntry};
use kunci_types::{FencingToken, LeaseId, Origin, Owner, ResourceName};
use std::sync::Arc;

/// The place of a record: index of its log entry, number in that.
pub(super) type At = (u64, u32);

/// Makes lines.
#[derive(Debug)]
pub(super) struct Projector {
    renewals: Renewals,
    times: Times,
    /// Records of places up to this one are there already.
    after: Option<At>,
}

/// The entry that lines are made of.
struct Page<'a> {
    projector: &'a mut Projector,
    into: &'a mut Vec<u8>,
    index: u64,
    number: u32,
    wall_ms: u64,
    cluster_time_ms: u64,
    lines: u64,
}

impl Projector {
    pub(super) fn new(renewals: Renewals) -> Self {
        Self { renewals, times: Times::default(), after: None }
    }

    /// Leaves out what has its place up to `after`.
    pub(super) fn skip_to(&mut self, after: At) {
        self.after = self.after.max(Some(after));
    }

    /// Up to where everything is there.
    pub(super) fn after(&self) -> Option<At> {
        self.after
    }

    /// Begins a line about the audit log itself.
    pub(super) fn own<'a>(&mut self, into: &'a mut Vec<u8>, kind: &str) -> Line<'a> {
        Line::begin(into, &mut self.times, kind, wall_clock::now_ms())
    }

    /// The line of what this node denied by itself.
    pub(super) fn denied(&mut self, into: &mut Vec<u8>, node_id: u64, denied: &Denied) {
        let mut line = self.own(into, "denied");
        line.text("action", denied.action.as_str());
        line.text("outcome", denied.outcome);
        line.text_if("resource", denied.resource.as_ref().map(ResourceName::as_str));
        line.text_if("owner", denied.owner.as_ref().map(Owner::as_str));
        from(&mut line, &denied.origin);
        if let Some(token) = denied.token {
            line.number("fencingToken", token.get());
        }
        line.lease(denied.lease_id);
        line.number("nodeId", node_id);
        line.end();
    }

    /// The lines of an applied entry; says how many there are.
    pub(super) fn seen(&mut self, into: &mut Vec<u8>, seen: &Seen) -> u64 {
        if self.after.is_some_and(|(index, number)| (seen.index, u32::MAX) <= (index, number)) {
            return 0;
        }
        let wall = match &seen.what {
            SeenEntry::Commands { entry, .. } => entry.provenance.wall(),
            SeenEntry::Members { .. } => None,
        };
        let mut page = Page {
            into,
            index: seen.index,
            number: 0,
            wall_ms: wall.map_or_else(wall_clock::now_ms, kunci_types::WallTime::as_ms),
            cluster_time_ms: seen.cluster_time.as_ms(),
            lines: 0,
            projector: self,
        };
        match &seen.what {
            SeenEntry::Commands { entry, replies, events, marks } => {
                page.commands(entry, replies, events, marks);
            }
            SeenEntry::Members { voters, learners } => {
                page.line("members_changed", |line| {
                    line.text("outcome", "done");
                    line.json(
                        "voters",
                        &format!("{:?}", voters.iter().map(Vec::from_iter).collect::<Vec<_>>()),
                    );
                    line.json("learners", &format!("{:?}", Vec::from_iter(learners)));
                });
            }
        }
        let lines = page.lines;
        self.after = Some((seen.index, u32::MAX));
        lines
    }
}

impl Page<'_> {
    /// Writes the next record, unless it is there already.
    fn line(&mut self, kind: &str, fill: impl FnOnce(&mut Line<'_>)) {
        let at = (self.index, self.number);
        self.number = self.number.saturating_add(1);
        if self.projector.after.is_some_and(|after| at <= after) {
            return;
        }
        self.lines += 1;
        let mut line = Line::begin(self.into, &mut self.projector.times, kind, self.wall_ms);
        line.at(at.0, at.1);
        line.number("clusterTimeMs", self.cluster_time_ms);
        fill(&mut line);
        line.end();
    }

    /// In the order of the steps: what happened in a step, then what its command was denied.
    fn commands(&mut self, entry: &Entry, replies: &[Placed<Reply>], events: &[Arc<Event>], marks: &[Mark]) {
        let mut order: Vec<(u32, usize)> =
            replies.iter().enumerate().map(|(at, reply)| (reply.place, at)).collect();
        order.sort_unstable();
        let mut marks = marks.iter().peekable();
        for (place, at) in order {
            while let Some(mark) = marks.next_if(|mark| mark.place < place) {
                self.event(events, mark, &Origin::UNKNOWN);
            }
            let origin = entry.provenance.origin(at);
            while let Some(mark) = marks.next_if(|mark| mark.place == place) {
                self.event(events, mark, origin);
            }
            if let (Some(command), Some(reply)) = (entry.commands.get(at), replies.get(at)) {
                self.reply(command, reply, origin);
            }
        }
        for mark in marks {
            self.event(events, mark, &Origin::UNKNOWN);
        }
    }

    fn event(&mut self, events: &[Arc<Event>], mark: &Mark, asked_by: &Origin) {
        let Some(event) = events.get(mark.event) else { return };
        let EventKind::Resource { resource, owner, change } = &event.kind else { return };
        let revision = event.revision.get();
        let (kind, outcome, token) = match change {
            Change::Queued => return,
            Change::Granted { .. } => ("granted", "done", Some(event.revision.token())),
            Change::Released { token } => ("released", "done", Some(*token)),
            Change::Expired { token } => ("expired", "done", Some(*token)),
            Change::Forced { token, .. } => ("forced", "done", Some(*token)),
            Change::Abandoned { token } => ("abandoned", "done", Some(*token)),
            Change::TimedOut => ("denied", "timed_out", None),
            Change::Cancelled => ("denied", "cancelled", None),
            Change::Dropped => ("denied", "dropped", None),
        };
        // Who ended a lease is who asked for that; everything else is about the client of the request.
        let asked = match change {
            Change::Released { .. } | Change::Forced { .. } => asked_by.address,
            Change::Queued
            | Change::Granted { .. }
            | Change::Expired { .. }
            | Change::Abandoned { .. }
            | Change::TimedOut
            | Change::Cancelled
            | Change::Dropped => mark.address,
        };
        let caller = match change {
            Change::Released { .. } | Change::Forced { .. } => asked_by.caller.as_ref().map(Owner::as_str),
            _ => mark.request.proven_caller(),
        };
        self.line(kind, |line| {
            line.number("revision", revision);
            if kind == "denied" {
                line.text("action", Action::Acquire.as_str());
            }
            line.text("outcome", outcome);
            line.text("resource", resource.as_str());
            line.text("owner", owner.as_str());
            line.text_if("caller", caller);
            line.address(asked);
            if let Some(token) = token {
                line.number("fencingToken", token.get());
            }
            line.lease(mark.lease_id);
            match change {
                Change::Granted { ttl_ms } => line.number("ttlMs", *ttl_ms),
                Change::Forced { reason, .. } => line.text("reason", reason.as_str()),
                _ => {}
            }
        });
    }

    fn reply(&mut self, command: &Command, reply: &Placed<Reply>, origin: &Origin) {
        let revision = reply.revision.get();
        match (command, &reply.value) {
            (Command::Acquire(acquire), Reply::Acquire(reply)) => {
                let subject = (Some(&acquire.resource), Some(&acquire.owner), None);
                // Of an acquire, authentication's name is in the command.
                let caller = match &acquire.caller {
                    kunci_types::Caller::Proven(name) => Some(name.clone()),
                    kunci_types::Caller::Unproven(_) => None,
                };
                let origin = Origin { caller, address: origin.address };
                self.denied(Action::Acquire, revision, subject, &origin, outcome::acquire(reply));
            }
            (Command::Renew(renew), Reply::Renew(replies)) => {
                for (renewal, reply) in renew.leases.iter().zip(replies) {
                    let subject = of_proof(&renewal.resource, &renewal.proof);
                    if let RenewReply::Renewed { remaining_ms, .. } = reply {
                        self.renewed(revision, subject, origin, *remaining_ms);
                    }
                    self.denied(Action::Renew, revision, subject, origin, outcome::renew(reply));
                }
            }
            (Command::Release(release), Reply::Release(reply)) => {
                let subject = of_proof(&release.resource, &release.proof);
                self.denied(Action::Release, revision, subject, origin, outcome::release(reply));
            }
            (Command::Cancel(cancel), Reply::Cancel(reply)) => {
                let subject = (Some(&cancel.resource), Some(cancel.caller.name()), None);
                self.denied(Action::Cancel, revision, subject, origin, outcome::cancel(reply));
            }
            (Command::ForceRelease(force), Reply::ForceRelease(reply)) => {
                let why = outcome::force_release(reply).map(|why| Why { token: Some(force.token), ..why });
                let subject = (Some(&force.resource), None, None);
                self.denied(Action::ForceRelease, revision, subject, origin, why);
            }
            (Command::SetPolicy(set), Reply::SetPolicy(reply)) => {
                let why = outcome::set_policy(reply);
                if why.is_none() {
                    self.line("policy_changed", |line| {
                        line.number("revision", revision);
                        line.text("outcome", "done");
                        from(line, origin);
                        let policy = serde_json::to_string(&PolicyBody::from(&set.policy));
                        line.json("policy", policy.as_deref().unwrap_or("{}"));
                    });
                }
                self.denied(Action::Policy, revision, (None, None, None), origin, why);
            }
            (Command::RaiseRevision(_), Reply::RaiseRevision(RaiseRevisionReply::Raised)) => {
                self.line("revision_raised", |line| {
                    line.number("revision", revision);
                    line.text("outcome", "done");
                });
            }
            // The rest tells of calls that come and go, or of what nobody asked for.
            _ => {}
        }
    }

    fn renewed(&mut self, revision: u64, subject: Subject<'_>, origin: &Origin, remaining_ms: u64) {
        if self.projector.renewals == Renewals::LeftOut {
            self.number = self.number.saturating_add(1);
            return;
        }
        self.line("renewed", |line| {
            line.number("revision", revision);
            line.text("outcome", "done");
            about(line, subject, origin, None);
            line.number("ttlMs", remaining_ms);
        });
    }

    fn denied(
        &mut self,
        action: Action,
        revision: u64,
        subject: Subject<'_>,
        origin: &Origin,
        why: Option<Why>,
    ) {
        let Some(why) = why else { return };
        self.line("denied", |line| {
            line.number("revision", revision);
            line.text("action", action.as_str());
            line.text("outcome", why.code.as_str());
            about(line, subject, origin, why.token);
            line.text_if("reason", why.reason);
        });
    }
}

/// What a command is about: the resource, and what it shows of a lease.
pub(super) type Subject<'a> = (Option<&'a ResourceName>, Option<&'a Owner>, Option<Shown>);

/// What a proof shows.
#[derive(Clone, Copy)]
pub(super) enum Shown {
    LeaseId(LeaseId),
    Token(FencingToken),
}

pub(super) fn of_proof<'a>(resource: &'a ResourceName, proof: &'a Proof) -> Subject<'a> {
    match proof {
        Proof::LeaseId(lease_id) => (Some(resource), None, Some(Shown::LeaseId(*lease_id))),
        Proof::OwnerToken { owner, token, .. } => (Some(resource), Some(owner), Some(Shown::Token(*token))),
    }
}

fn about(line: &mut Line<'_>, subject: Subject<'_>, origin: &Origin, token: Option<FencingToken>) {
    let (resource, owner, shown) = subject;
    line.text_if("resource", resource.map(ResourceName::as_str));
    line.text_if("owner", owner.map(Owner::as_str));
    from(line, origin);
    match (token, shown) {
        (Some(token), _) | (None, Some(Shown::Token(token))) => line.number("fencingToken", token.get()),
        (None, Some(Shown::LeaseId(_)) | None) => {}
    }
    if let Some(Shown::LeaseId(lease_id)) = shown {
        line.lease(Some(lease_id));
    }
}

fn from(line: &mut Line<'_>, origin: &Origin) {
    line.text_if("caller", origin.caller.as_ref().map(Owner::as_str));
    line.address(origin.address);
}

/// A text as JSON, to look for it in lines.
pub(super) fn quoted(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_text(&mut bytes, text);
    bytes
}
