//! Whether this node's disk can be counted on: that it answers, and that there is room.
//!
//! Owns: the reserve of space, and how long a sync may take. Never: writes anything.

use crate::measures::{Histogram, of_syncs};
use crate::storage::Files;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Below this much free space new acquires are refused, so that renewals, releases and expiries can go on.
pub(crate) const RESERVE_BYTES: u64 = 64 << 20;
/// A sync that takes longer than this says that the disk hangs.
pub(crate) const SYNC_MAX: Duration = Duration::from_secs(1);

/// The syncs that were begun and haven't ended yet, oldest first. A clone is another handle to the same.
#[derive(Clone, Debug)]
pub(crate) struct Syncs {
    begun: Arc<Mutex<VecDeque<Instant>>>,
    took: Arc<Histogram>,
}

impl Default for Syncs {
    fn default() -> Self {
        Self { begun: Arc::default(), took: Arc::new(of_syncs()) }
    }
}

impl Syncs {
    /// Notes the begin of one.
    pub(crate) fn begin(&self) {
        self.begun().push_back(kunci_process::now());
    }

    /// Notes the end of the oldest one; they end in the order in which they began.
    pub(crate) fn end(&self) {
        let begun = self.begun().pop_front();
        if let Some(begun) = begun {
            self.took.record_time(kunci_process::now().saturating_duration_since(begun));
        }
    }

    /// How long those took that have ended, in µs.
    pub(crate) fn took(&self) -> &Histogram {
        &self.took
    }

    /// How long the oldest one has taken so far.
    fn longest(&self) -> Duration {
        let oldest = self.begun().front().copied();
        oldest.map_or(Duration::ZERO, |begun| kunci_process::now().saturating_duration_since(begun))
    }

    fn begun(&self) -> MutexGuard<'_, VecDeque<Instant>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The disk under the data folder. A clone is another handle to the same.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    files: Arc<dyn Files>,
    folder: PathBuf,
    syncs: Syncs,
    is_low: Arc<AtomicBool>,
    free_bytes: Arc<AtomicU64>,
}

impl Disk {
    pub(crate) fn new(files: Arc<dyn Files>, folder: PathBuf, syncs: Syncs) -> Self {
        let disk = Self { files, folder, syncs, is_low: Arc::default(), free_bytes: Arc::default() };
        disk.look();
        disk
    }

    /// Looks how much room there is, and says so when that changed.
    pub(crate) fn look(&self) {
        let free = match self.files.free_bytes(&self.folder) {
            Ok(free) => free,
            Err(error) => {
                tracing::warn!(folder = %self.folder.display(), %error, "can't see how much disk space is free");
                return;
            }
        };
        self.free_bytes.store(free, Ordering::Relaxed);
        let is_low = free < RESERVE_BYTES;
        if self.is_low.swap(is_low, Ordering::Relaxed) != is_low {
            let (folder, free_mib) = (self.folder.display(), free >> 20);
            if is_low {
                tracing::error!(%folder, free_mib, "the disk is nearly full: while this node leads new acquires are refused until there is more room");
            } else {
                tracing::info!(%folder, free_mib, "there is room on the disk again");
            }
        }
    }

    /// Whether there is less room than the reserve, as of the last look.
    pub(crate) fn is_low(&self) -> bool {
        self.is_low.load(Ordering::Relaxed)
    }

    /// How much room there is, as of the last look.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.free_bytes.load(Ordering::Relaxed)
    }

    /// How long syncs took, in µs.
    pub(crate) fn syncs_took(&self) -> &Histogram {
        self.syncs.took()
    }

    /// Whether a sync has taken too long.
    pub(crate) fn is_stuck(&self) -> bool {
        self.syncs.longest() > SYNC_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::SystemFiles;

    #[tokio::test(start_paused = true)]
    async fn a_sync_that_takes_long_is_seen_until_it_ends() {
        let syncs = Syncs::default();
        let disk = Disk::new(Arc::new(SystemFiles), PathBuf::from("."), syncs.clone());
        syncs.begin();
        tokio::time::advance(Duration::from_millis(600)).await;
        syncs.begin();
        assert!(!disk.is_stuck());
        tokio::time::advance(Duration::from_millis(600)).await;
        assert!(disk.is_stuck());
        syncs.end();
        assert!(!disk.is_stuck());
    }
}
