//! A snapshot file: whole or refused, never a panic. The first byte says whether checksums are added to a header and a
//! chunk.
#![no_main]

use kunci_replica::fuzzing::{sealed_snapshot, snapshot_file};
use libfuzzer_sys::fuzz_target;

/// A header that can be read.
const HEADER: &[u8] = br#"{"cluster":"000102030405060708090a0b0c0d0e0f","meta":{"last_log_id":null,"last_membership":{"log_id":null,"membership":{"configs":[],"nodes":{}}},"snapshot_id":""},"ids_used":1}"#;

fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((b'h', header)) => sealed_snapshot(header, &[]),
        Some((b'c', chunk)) => sealed_snapshot(HEADER, chunk),
        Some((_, file)) => snapshot_file(file),
        None => snapshot_file(&[]),
    }
});
