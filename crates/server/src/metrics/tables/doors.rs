//! Connections and bytes of the front doors.

use crate::metrics::row::{Row, Section, label};

pub(super) const SECTION: Section = Section { title: "Doors", rows: ROWS, below: "" };

const ROWS: &[Row] = &[
    Row::gauge(
        "kunci_connections",
        &[label("door", "`http`, `native`")],
        "Open connections of clients.",
        |from, out| {
            for (door, measures) in from.doors() {
                out.under(&[("door", door)], u64::try_from(measures.connections()).unwrap_or(u64::MAX));
            }
        },
    ),
    Row::gauge("kunci_connections_max", &[label("door", "")], "How many there may be.", |from, out| {
        for (door, measures) in from.doors() {
            out.under(&[("door", door)], u64::try_from(measures.connections_max()).unwrap_or(u64::MAX));
        }
    }),
    Row::counter(
        "kunci_connections_opened_total",
        &[label("door", "")],
        "Connections that were taken.",
        |from, out| {
            from.doors().for_each(|(door, measures)| out.under(&[("door", door)], measures.opened.get()));
        },
    ),
    Row::counter(
        "kunci_received_bytes_total",
        &[label("door", "")],
        "Bytes that clients sent.",
        |from, out| {
            from.doors().for_each(|(door, measures)| out.under(&[("door", door)], measures.received.get()));
        },
    ),
    Row::counter(
        "kunci_sent_bytes_total",
        &[label("door", "")],
        "Bytes that clients were sent.",
        |from, out| {
            from.doors().for_each(|(door, measures)| out.under(&[("door", door)], measures.sent.get()));
        },
    ),
];
