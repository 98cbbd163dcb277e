//! What is on the disk, and how long it takes.

use crate::metrics::row::{Row, Section, Unit};
use kunci_replica::DISK_RESERVE_BYTES;

pub(super) const SECTION: Section = Section { title: "Disk", rows: ROWS, below: "" };

const ROWS: &[Row] = &[
    Row::histogram(
        "kunci_fsync_duration_seconds",
        &[],
        "From asking for a part of the log to be on disk to its being there.",
        |from, out| {
            let members = from.member.iter();
            members.for_each(|member| out.spread(&[], Unit::Micros, member.service.syncs_took()));
        },
    ),
    Row::gauge("kunci_log_bytes", &[], "The log's files.", |from, out| {
        from.member.iter().for_each(|member| out.one(member.readings.log_bytes));
    }),
    Row::gauge("kunci_snapshot_bytes", &[], "The newest snapshot.", |from, out| {
        from.member.iter().for_each(|member| out.one(member.readings.snapshot_bytes));
    }),
    Row::gauge("kunci_snapshot_index", &[], "The last entry in the newest snapshot.", |from, out| {
        from.member.iter().for_each(|member| out.one(member.readings.snapshot_index));
    }),
    Row::counter(
        "kunci_snapshots_received_total",
        &[],
        "Snapshots that this node took from the leader, since it was too far behind.",
        |from, out| {
            let members = from.member.iter();
            members.for_each(|member| out.one(member.service.measures().snapshots_received.get()));
        },
    ),
    Row::histogram(
        "kunci_snapshot_duration_seconds",
        &[],
        "Writing a snapshot of this node's state.",
        |from, out| {
            let members = from.member.iter();
            members.for_each(|member| out.spread(&[], Unit::Micros, &member.service.measures().snapshot));
        },
    ),
    Row::gauge(
        "kunci_disk_free_bytes",
        &[],
        "Free space on the disk of the data folder, as of the last look, once a second.",
        |from, out| from.member.iter().for_each(|member| out.one(member.readings.disk_free_bytes)),
    ),
    Row::gauge(
        "kunci_disk_reserve_bytes",
        &[],
        "With less free than this, new acquires are refused.",
        |_, out| out.one(DISK_RESERVE_BYTES),
    ),
    Row::gauge("kunci_disk_stuck", &[], "1 while a sync takes longer than a second.", |from, out| {
        from.member.iter().for_each(|member| out.is_so(member.readings.disk_stuck));
    }),
];
