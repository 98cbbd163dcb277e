//! How long the log gets.
//!
//! Owns: when a snapshot is made, and when what it covers leaves the log. Never: writes a snapshot, or removes a file.

use crate::seat::Seat;
use openraft::async_runtime::WatchReceiver;

/// With the disk nearly full the log is made short more often, since a snapshot lets its files go.
const SNAPSHOT_WHEN_LOW_BYTES: u64 = 4 << 20;
/// What leaves the log at a time is a share of what is to go: taking out all of it in one go would keep the consensus from
/// its work, and the log's writer from its syncs, for a tenth of a second.
const PURGED_OF: u64 = 16;
/// Fewer entries stay until they are that many: each purge is a record in the log.
const PURGED_MIN: u64 = 1_024;

impl Seat {
    /// One step; for each tick.
    pub(crate) async fn keep_log_short(&self) {
        let every = if self.disk.is_low() {
            self.snapshot_every_bytes.min(SNAPSHOT_WHEN_LOW_BYTES)
        } else {
            // Writing a large state anew for every few entries would cost more than the entries do.
            self.snapshot_every_bytes.max(self.snapshots.newest_bytes())
        };
        // Failures show in the replica's running state.
        if self.machine.unsnapped_bytes() >= every {
            drop(self.raft.trigger().snapshot().await);
        }
        let upto = {
            let metrics = self.raft.metrics();
            let metrics = metrics.borrow_watched();
            purge_upto(Ends {
                purged: metrics.purged.map_or(0, |last| last.index + 1),
                covered: metrics.snapshot.map_or(0, |last| last.index + 1),
                kept: self.entries_kept,
            })
        };
        if let Some(upto) = upto {
            drop(self.raft.trigger().purge_log(upto).await);
        }
    }
}

/// Where a log begins and what may leave it, as indexes of the first entry behind.
#[derive(Clone, Copy)]
struct Ends {
    /// Behind what has left it.
    purged: u64,
    /// Behind what the snapshot covers.
    covered: u64,
    /// How many entries that are covered stay.
    kept: u64,
}

/// The last entry to leave the log now.
fn purge_upto(Ends { purged, covered, kept }: Ends) -> Option<u64> {
    let to_go = covered.saturating_sub(kept).saturating_sub(purged);
    (to_go >= PURGED_MIN).then(|| purged + (to_go / PURGED_OF).max(PURGED_MIN) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_snapshot_covers_leaves_step_by_step_and_the_kept_entries_stay() {
        let (covered, kept) = (1_000_000, 1_000);
        let (mut purged, mut steps) = (0, 0);
        while let Some(upto) = purge_upto(Ends { purged, covered, kept }) {
            assert!((purged..covered - kept).contains(&upto), "{upto} after {purged}");
            assert!(upto + 1 - purged <= covered / PURGED_OF, "{upto} after {purged}");
            (purged, steps) = (upto + 1, steps + 1);
        }
        assert!(covered - kept - purged < PURGED_MIN, "{purged} is left behind");
        // At 20 steps a second: in seconds, and so faster than the log grows.
        assert!(steps < 80, "{steps}");
    }

    #[test]
    fn nothing_leaves_a_log_that_no_snapshot_covers_or_that_is_short() {
        for (purged, covered) in [(0, 0), (0, 2_023), (5_000, 7_023), (9_000, 3)] {
            assert_eq!(purge_upto(Ends { purged, covered, kept: 1_000 }), None, "{purged} {covered}");
        }
        assert_eq!(purge_upto(Ends { purged: 5_000, covered: 7_024, kept: 1_000 }), Some(6_023));
    }
}
