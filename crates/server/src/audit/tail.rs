//! How far the files go that an earlier process left behind.
//!
//! Owns: what of them counts. A last line that isn't whole was never finished and is cut off.

use super::files::{Current, files_of};
use super::project::At;
use super::read::{Backward, Forward};
use kunci_api::AuditRecord;
use std::io;
use std::path::Path;

/// How much of the files is looked through for the last record that has a place in the log.
const LOOK_BYTES_MAX: u64 = 64 << 20;

/// How far an audit log goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// Up to where the log is recorded, or known not to be.
    pub(super) after: Option<At>,
    /// Whose it is; none for a new one.
    pub(super) cluster_id: Option<String>,
    /// When the file that is written began.
    pub(super) began_ms: Option<u64>,
}

/// Cuts off a last line of the current file that isn't whole, and says how far the files go.
pub(super) fn look(folder: &Path, current: &mut Current) -> io::Result<Left> {
    cut_unfinished(current)?;
    let mut left = Left::default();
    let files = files_of(folder)?;
    for place in files.iter().rev() {
        let first = Forward::open(std::slice::from_ref(place)).next();
        let Some(Ok(line)) = first else { continue };
        let Ok(record) = serde_json::from_slice::<AuditRecord>(&line) else { continue };
        if place.number == u64::MAX {
            left.began_ms = ms_of(&record.wall_time);
        }
        left.cluster_id = record.cluster_id;
        break;
    }
    let mut lines = Backward::open(&files)?;
    while let Some(line) = lines.next()? {
        let at = serde_json::from_slice(line).ok().and_then(|record: AuditRecord| place_of(&record));
        if at.is_some() || lines.scanned() > LOOK_BYTES_MAX {
            left.after = at;
            break;
        }
    }
    Ok(left)
}

fn cut_unfinished(current: &mut Current) -> io::Result<()> {
    let mut lines = Backward::open_file(current.file().try_clone()?, current.bytes());
    let mut whole = current.bytes();
    while let Some(placed) = lines.next_with_begin()? {
        // Zeros are what some file systems leave behind a power cut.
        if placed.ended && serde_json::from_slice::<AuditRecord>(placed.line).is_ok() {
            break;
        }
        whole = placed.begins;
    }
    if whole < current.bytes() {
        let bytes = current.bytes() - whole;
        tracing::warn!(bytes, "the audit log ends in the middle of a line: cut it off; it is written again");
        current.cut(whole)?;
    }
    Ok(())
}

/// Up to where a record says that the log is recorded, or isn't.
fn place_of(record: &AuditRecord) -> Option<At> {
    if let Some(at) = &record.at {
        return parse_at(at);
    }
    record.to_index.map(|index| (index, u32::MAX))
}

/// Reads `<index>.<number>`.
pub(super) fn parse_at(at: &str) -> Option<At> {
    let (index, number) = at.split_once('.')?;
    Some((index.parse().ok()?, number.parse().ok()?))
}

/// Reads a wall time.
pub(super) fn ms_of(wall_time: &str) -> Option<u64> {
    let at: jiff::Timestamp = wall_time.parse().ok()?;
    u64::try_from(at.as_millisecond()).ok()
}
