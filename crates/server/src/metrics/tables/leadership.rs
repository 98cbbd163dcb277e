//! Who leads, and how often that changes.

use crate::metrics::row::{Row, Section, Unit, label};
use kunci_replica::Role;

pub(super) const SECTION: Section = Section { title: "Leadership", rows: ROWS, below: "" };

const ROLES: [(&str, Role); 4] = [
    ("leader", Role::Leader),
    ("follower", Role::Follower),
    ("candidate", Role::Candidate),
    ("learner", Role::Learner),
];

const ROWS: &[Row] = &[
    Row::gauge("kunci_leads", &[], "1 while this node leads and serves.", |from, out| {
        let leads = from.member.iter().map(|member| member.status.leader == Some(member.status.node_id));
        leads.for_each(|leads| out.is_so(leads));
    }),
    Row::gauge(
        "kunci_serving",
        &[],
        "1 while requests about locks are answered, here or by a leader that this node knows.",
        |from, out| out.is_so(from.member.as_ref().is_some_and(|member| member.status.serving)),
    ),
    Row::gauge(
        "kunci_role",
        &[label("role", "`leader`, `follower`, `candidate`, `learner`")],
        "1 for the role that this node has, 0 for the others.",
        |from, out| {
            let Some(member) = &from.member else { return };
            for (name, role) in ROLES {
                out.under(&[("role", name)], (member.status.role == role).into());
            }
        },
    ),
    Row::gauge("kunci_term", &[], "The term of the consensus: grows with each election.", |from, out| {
        from.member.iter().for_each(|member| out.one(member.readings.term));
    }),
    Row::gauge("kunci_members", &[], "Members of the cluster, as this node knows.", |from, out| {
        let members = from.member.iter().map(|member| member.status.members.len());
        members.for_each(|members| out.one(u64::try_from(members).unwrap_or(u64::MAX)));
    }),
    Row::gauge(
        "kunci_members_healthy",
        &[],
        "Members that were heard of lately and whose disk answers, as this node knows.",
        |from, out| {
            let Some(member) = &from.member else { return };
            let healthy = member.status.members.iter().filter(|member| member.healthy).count();
            out.one(u64::try_from(healthy).unwrap_or(u64::MAX));
        },
    ),
    Row::counter(
        "kunci_elections_total",
        &[],
        "Terms with a leader that this node has seen begin.",
        |from, out| from.member.iter().for_each(|member| out.one(member.service.measures().elections.get())),
    ),
    Row::counter(
        "kunci_leader_changes_total",
        &[],
        "How often another node than before led, as this node saw.",
        |from, out| {
            from.member.iter().for_each(|member| out.one(member.service.measures().leader_changes.get()));
        },
    ),
    Row::histogram(
        "kunci_election_duration_seconds",
        &[],
        "From when this node knew of no leader to when it knew of one that serves.",
        |from, out| {
            let members = from.member.iter();
            members.for_each(|member| out.spread(&[], Unit::Micros, &member.service.measures().election));
        },
    ),
    Row::gauge(
        "kunci_without_leader_seconds",
        &[],
        "How long this node has known of no leader; 0 while it does.",
        |from, out| {
            let members = from.member.iter();
            members.for_each(|member| out.labelled(&[], member.readings.without_leader.as_secs_f64()));
        },
    ),
    Row::histogram(
        "kunci_takeover_duration_seconds",
        &[],
        "From when this node was elected to when it served.",
        |from, out| {
            let members = from.member.iter();
            members.for_each(|member| out.spread(&[], Unit::Micros, &member.service.measures().takeover));
        },
    ),
];
