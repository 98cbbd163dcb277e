//! Cluster time against the clocks of the machine.

use crate::metrics::row::{Row, Section, Unit};

pub(super) const SECTION: Section = Section { title: "Time", rows: ROWS, below: "" };

const ROWS: &[Row] = &[
    Row::gauge(
        "kunci_cluster_time_seconds",
        &[],
        "Cluster time: at the leader now, elsewhere that of the last entry.",
        |from, out| {
            let time = from.member.iter().map(|member| member.readings.cluster_time.as_ms());
            time.for_each(|ms| out.one_in(Unit::Millis, ms));
        },
    ),
    Row::gauge(
        "kunci_wall_time_seconds",
        &[],
        "This node's wall clock at the scrape, in seconds since 1970. It decides nothing.",
        |from, out| out.one_in(Unit::Millis, from.wall_ms),
    ),
    Row::counter(
        "kunci_cluster_time_skipped_seconds_total",
        &[],
        "Time that passed while this node led and that cluster time didn't count, since the machine stalled.",
        |from, out| {
            from.member.iter().for_each(|member| out.one_in(Unit::Micros, member.readings.skipped_us));
        },
    ),
];
