//! What the fuzz target `log_record` reads: bytes where a file of the log should be.
//!
//! Owns: that no byte makes the look at a log or its replay panic, and that a cut is made once. Never: ships; it is built
//! with `--cfg fuzzing` only.

use super::super::codec::{ENTRY_PREFIX_BYTES, PAYLOAD_HEADER_BYTES};
use super::super::scan::{End, look_at};
use super::State;

/// Looks at a file of the log, cuts an unfinished end, and replays what is whole.
pub fn log_file(bytes: &[u8]) {
    let found = look_at(bytes);
    let whole = &bytes[..usize::try_from(found.whole_bytes).unwrap_or(usize::MAX)];
    if let End::Damaged(what) = &found.end {
        assert!(!what.is_empty());
    }
    if !whole.is_empty() {
        let again = look_at(whole);
        assert!(matches!(again.end, End::Whole) && again.records == found.records, "a cut is made once");
    }
    let replayed = State::default().replay(whole);
    assert!(replayed.is_err() || replayed.is_ok_and(|records| records as u64 == found.records));
}

/// As [`log_file`], of one record to which the checksums are added that a guess never has.
pub fn sealed_record(bytes: &[u8]) {
    let mut record = bytes.to_vec();
    let header = ENTRY_PREFIX_BYTES..ENTRY_PREFIX_BYTES + PAYLOAD_HEADER_BYTES;
    if let Some(header) = record.get_mut(header) {
        let checksum = crc32fast::hash(&header[..6]);
        header[6..].copy_from_slice(&checksum.to_be_bytes());
    }
    let checksum = crc32fast::hash(&record);
    record.extend(u64::from(checksum).to_be_bytes());
    log_file(&record);
}
