//! The numbers that a node shows, and their names.
//!
//! Owns: `docs/metrics.md` and the text of `/metrics`, both from one table. Never: a label that grows with resources,
//! owners or clients; a number that decides anything.

mod door;
mod page;
mod process;
mod requests;
mod row;
mod sources;
mod tables;

pub(crate) use door::DoorMeasures;
pub use page::page;
pub(crate) use requests::{Op, Outcome};
pub(crate) use sources::{HttpNumbers, Sources};

use prometheus::{TEXT_FORMAT, TextEncoder};

/// The type of [`text`].
pub(crate) const CONTENT_TYPE: &str = TEXT_FORMAT;

/// All that there is to show, in Prometheus' text format.
pub(crate) fn text(sources: &Sources<'_>) -> String {
    let rows = tables::ALL.iter().flat_map(|section| section.rows);
    let families: Vec<_> = rows.filter_map(|row| row.family(sources)).collect();
    TextEncoder::new().encode_to_string(&families).unwrap_or_else(|error| {
        // It refuses only a family without samples or name, and those aren't among them.
        tracing::error!(%error, "the metrics can't be written");
        String::new()
    })
}
