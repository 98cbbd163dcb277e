//! What a log entry carries: read or refused; and whatever can be read, every replica can apply.
#![no_main]

use kunci_core::command::Entry;
use kunci_core::{LockTable, Restore};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(entry) = Entry::decode(bytes) else { return };
    let again = Entry::decode(&entry.encode()).expect("what was written can be read");
    assert_eq!(again.encode(), entry.encode());
    // Cluster time begins at 0, and a leader stamps how much has gone by: nobody sees its end, where leases have none.
    if entry.now.as_ms() > u64::MAX / 2 {
        return;
    }
    let mut table = LockTable::new();
    table.apply(&entry);
    let snapshot = table.snapshot();
    snapshot.check();
    let mut restore = Restore::default();
    for chunk in snapshot.chunks() {
        restore.chunk(&chunk).expect("what was written can be read");
    }
    assert_eq!(restore.finish().expect("a snapshot is whole").digest(), table.digest());
});
