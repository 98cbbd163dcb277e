//! The machine that all of them run on.
//!
//! Owns: what a sync costs on its disk, and how it is told. Never: a path of it.

use anyhow::Context;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Syncs that are timed; their median is told.
const SYNCS: usize = 500;
/// What is written before each sync: about a small log entry.
const BYTES: [u8; 512] = [7; 512];

/// The median time of an appended record with its `fdatasync`.
pub(crate) fn sync_time(folder: &Path) -> anyhow::Result<Duration> {
    let mut file = tempfile::tempfile_in(folder).context("create a file")?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begun = Instant::now();
        file.write_all(&BYTES).context("write")?;
        file.sync_data().context("sync")?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(times[SYNCS / 2])
}

/// How many cores there are.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
