//! What the node is, and what it uses.

use crate::metrics::row::{Row, Section, Unit, label};

pub(super) const SECTION: Section = Section { title: "The node", rows: ROWS, below: "" };

const ROWS: &[Row] = &[
    Row::gauge("kunci_build_info", &[label("version", "")], "Always 1.", |_, out| {
        out.under(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    }),
    Row::gauge(
        "kunci_node_info",
        &[label("cluster", ""), label("node", "")],
        "Always 1, once the node belongs to a cluster: the cluster's id and the node's.",
        |from, out| {
            if let Some(member) = &from.member {
                let (cluster, node) =
                    (member.status.cluster_id.to_string(), member.status.node_id.to_string());
                out.under(&[("cluster", &cluster), ("node", &node)], 1);
            }
        },
    ),
    Row::gauge(
        "process_start_time_seconds",
        &[],
        "When the process began, in seconds since 1970.",
        |from, out| from.process.iter().for_each(|process| out.one_in(Unit::Millis, process.started_ms)),
    ),
    Row::counter(
        "process_cpu_seconds_total",
        &[],
        "Processor time that the process has used.",
        |from, out| from.process.iter().for_each(|process| out.one_in(Unit::Millis, process.cpu_ms)),
    ),
    Row::gauge("process_resident_memory_bytes", &[], "Memory that the process has.", |from, out| {
        from.process.iter().for_each(|process| out.one(process.resident_bytes));
    }),
    Row::gauge("process_virtual_memory_bytes", &[], "Address space that the process has.", |from, out| {
        from.process.iter().for_each(|process| out.one(process.virtual_bytes));
    }),
    Row::gauge("process_threads", &[], "Threads of the process.", |from, out| {
        from.process.iter().for_each(|process| out.one(process.threads));
    }),
    Row::gauge("process_open_fds", &[], "Files and sockets that the process has open.", |from, out| {
        from.process.iter().for_each(|process| out.one(process.open_files));
    }),
    Row::gauge("process_max_fds", &[], "How many it may have open.", |from, out| {
        from.process.iter().for_each(|process| out.one(process.open_files_max));
    }),
];
