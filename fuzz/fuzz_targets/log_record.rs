//! A file of the log: whole, unfinished or damaged, never a panic. The first byte says whether checksums are added.
#![no_main]

use kunci_replica::fuzzing::{log_file, sealed_record};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((b's', record)) => sealed_record(record),
        Some((_, file)) => log_file(file),
        None => log_file(&[]),
    }
});
