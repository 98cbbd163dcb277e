//! A snapshot file: whole or refused, never a panic. The first byte says whether checksums are added to a header and a
//! chunk.
#![no_main]

use kunci_replica::fuzzing::{sealed_snapshot, snapshot_file};
use libfuzzer_sys::fuzz_target;

/// The header of a snapshot of nothing.
const HEADER: &[u8] = include_bytes!("../corpus/snapshot_header.json");

fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((b'h', header)) => sealed_snapshot(header, &[]),
        Some((b'c', chunk)) => sealed_snapshot(HEADER, chunk),
        Some((_, file)) => snapshot_file(file),
        None => snapshot_file(&[]),
    }
});
