//! From a command to its being applied.

use crate::metrics::row::{Row, Section, Unit, label};

pub(super) const SECTION: Section = Section { title: "Log", rows: ROWS, below: "" };

const ROWS: &[Row] = &[
    Row::gauge(
        "kunci_batcher_queue",
        &[label("kind", "`renewals`, `others`")],
        "Commands that wait to be put into an entry.",
        |from, out| {
            let Some(member) = &from.member else { return };
            let readings = &member.readings;
            for (kind, queued) in [("renewals", readings.renewals_queued), ("others", readings.others_queued)]
            {
                out.under(&[("kind", kind)], u64::try_from(queued).unwrap_or(u64::MAX));
            }
        },
    ),
    Row::gauge(
        "kunci_batcher_in_flight",
        &[],
        "Entries that were proposed and aren't decided.",
        |from, out| {
            let in_flight = from.member.iter().map(|member| member.readings.in_flight);
            in_flight.for_each(|entries| out.one(u64::try_from(entries).unwrap_or(u64::MAX)));
        },
    ),
    Row::histogram("kunci_batch_commands", &[], "Commands in one entry.", |from, out| {
        let members = from.member.iter();
        members.for_each(|member| out.spread(&[], Unit::One, &member.service.measures().batch_commands));
    }),
    Row::histogram(
        "kunci_commit_duration_seconds",
        &[],
        "From proposing an entry to its being on a quorum's disks and applied.",
        |from, out| {
            let members = from.member.iter();
            members.for_each(|member| out.spread(&[], Unit::Micros, &member.service.measures().commit));
        },
    ),
    Row::histogram("kunci_apply_duration_seconds", &[], "Applying one entry.", |from, out| {
        let members = from.member.iter();
        members.for_each(|member| out.spread(&[], Unit::Micros, &member.service.measures().apply));
    }),
    Row::counter(
        "kunci_applied_entries_total",
        &[],
        "Entries with commands that were applied.",
        |from, out| {
            from.member.iter().for_each(|member| out.one(member.service.measures().applied_entries.get()));
        },
    ),
    Row::counter("kunci_applied_bytes_total", &[], "Their bytes.", |from, out| {
        from.member.iter().for_each(|member| out.one(member.service.measures().applied_bytes.get()));
    }),
    Row::gauge("kunci_log_last_index", &[], "The last entry in this node's log.", |from, out| {
        from.member.iter().for_each(|member| out.one(member.readings.last_index));
    }),
    Row::gauge(
        "kunci_committed_index",
        &[],
        "The last entry that this node knows to be committed.",
        |from, out| from.member.iter().for_each(|member| out.one(member.readings.committed_index)),
    ),
    Row::gauge("kunci_applied_index", &[], "The last entry that this node has applied.", |from, out| {
        from.member.iter().for_each(|member| out.one(member.status.applied_index));
    }),
    Row::gauge(
        "kunci_apply_lag_entries",
        &[],
        "Entries that this node knows to be committed and hasn't applied. A node that is cut off doesn't know: compare \
         `kunci_applied_index` over the nodes, too.",
        |from, out| {
            let Some(member) = &from.member else { return };
            out.one(member.readings.committed_index.saturating_sub(member.status.applied_index));
        },
    ),
];
