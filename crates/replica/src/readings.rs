//! What a replica shows of itself in numbers.
//!
//! Owns: reading them where they are kept. Never: a count that has to be made for it; whoever scrapes holds up nobody.

use crate::lead::Lead;
use crate::measures::{Histogram, Measures};
use crate::replica::Replica;
use crate::snapshot_store::SnapshotFile;
use crate::status::Readings;
use std::time::Duration;

impl Replica {
    /// What this node can say of itself in numbers, without asking anybody.
    pub fn readings(&self) -> Readings {
        let seat = &self.seat;
        let metrics = seat.metrics();
        let (contended, applied, time) = seat
            .machine
            .view(|state| (state.table.contended_count(), state.applied_index(), state.table.now()));
        let (renewals_queued, others_queued) = seat.batcher.queued();
        let committed = metrics.local_committed.max(metrics.cluster_committed);
        let snapshot = seat.snapshots.newest();
        let without_leader = match self.lead() {
            Lead::Nobody { since, .. } => kunci_process::now().saturating_duration_since(since),
            Lead::Here | Lead::At { .. } => Duration::ZERO,
        };
        Readings {
            term: metrics.current_term,
            contended,
            renewals_queued,
            others_queued,
            in_flight: seat.term.in_flight(),
            last_index: metrics.last_log_index.unwrap_or(0).max(applied),
            // The library's word may be older than the state.
            committed_index: committed.map_or(0, |committed| committed.index).max(applied),
            log_bytes: seat.log_size.bytes(),
            snapshot_bytes: snapshot.as_ref().map_or(0, SnapshotFile::bytes),
            snapshot_index: snapshot.and_then(|file| file.meta().last_log_id).map_or(0, |last| last.index),
            disk_free_bytes: seat.disk.free_bytes(),
            disk_stuck: seat.disk.is_stuck(),
            cluster_time: seat.term.now().map_or(time, |now| now.max(time)),
            skipped_us: seat.term.skipped_us(),
            without_leader,
        }
    }

    /// What this node has measured since it began.
    pub fn measures(&self) -> &Measures {
        &self.seat.machine.measures
    }

    /// How long the disk took for parts of the log, in µs.
    pub fn syncs_took(&self) -> &Histogram {
        self.seat.disk.syncs_took()
    }
}
