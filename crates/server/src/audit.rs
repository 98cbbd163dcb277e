//! The audit log: who got, kept, gave back and was denied which lock, as JSON lines in files of this node.
//!
//! Owns: what is recorded, where, and how much of it is kept. It is a projection of the committed log, and besides it of
//! what this node refused by itself. Never: holds up a lock, or writes a lease id, a request id or metadata; what can't be
//! recorded leaves a gap that says so.
//!
//! The way of a record: `Audit` is shown what was applied, and puts it in the `queue`; the `writer`, a thread of its own,
//! lets `project` make lines of it, and puts those in the `files`. `read` and `search` are for those who ask.

mod denied;
mod files;
mod held;
mod line;
mod outcome;
mod project;
mod queue;
mod read;
mod search;
mod tail;
#[cfg(test)]
mod tests;
mod wall_clock;
mod writer;

pub use files::{CURRENT, Place, files_of};
pub use held::{Doubt, HeldAt};
pub use line::fingerprint;
pub use read::{Backward, Forward};
pub use search::{Found, Search, Sought};
pub use wall_clock::{now_ms, time_ms};

use kunci_core::command::Command;
use kunci_replica::{ClusterId, Observer, Refusal, Seen};
use kunci_types::Origin;
use queue::{Queue, Said};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) use denied::Denied;
pub(crate) use outcome::Action;

/// How the audit log is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// The folder that the files are in.
    pub folder: PathBuf,
    /// The data folder, for which room is left if it is on the same disk.
    pub data: PathBuf,
    /// Whether renewals are recorded.
    pub renewals: Renewals,
    /// A file is put aside once it has this many bytes.
    pub file_bytes_max: u64,
    /// And once it is this old.
    pub file_age_max: Duration,
    /// All files together have at most this many bytes; the oldest go.
    pub total_bytes_max: u64,
}

/// Whether renewals are recorded. They are most of what happens, and seldom what somebody looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewals {
    /// One record each.
    Recorded,
    /// Only those that were denied.
    LeftOut,
}

/// How the recording goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditCounts {
    /// Records written since the start.
    pub written: u64,
    /// Records that are missing since the start, at most.
    pub missing: u64,
    /// What waits to be written.
    pub waiting: u64,
    /// Times that a write failed since the start.
    pub failures: u64,
}

/// One node's audit log. A clone is another handle to the same.
#[derive(Clone)]
pub struct Audit {
    queue: Arc<Queue>,
    settings: Arc<AuditSettings>,
}

impl Audit {
    /// Starts the thread that writes. Nothing is opened before the replica begins.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(settings: AuditSettings) -> io::Result<Self> {
        let audit = Self { queue: Arc::default(), settings: Arc::new(settings) };
        writer::start(Arc::clone(&audit.queue), Arc::clone(&audit.settings))?;
        Ok(audit)
    }

    /// Records that this node denied something by itself, which the log knows nothing of.
    pub(crate) fn denied(&self, denied: Denied) {
        self.queue_denied(Some(denied));
    }

    fn queue_denied(&self, denied: Option<Denied>) {
        if let Some(denied) = denied {
            self.queue.push_denied(denied);
        }
    }

    /// Lets the writer write what it has, for at most `within`. Nothing is taken after that.
    pub async fn stop(&self, within: Duration) {
        self.queue.close();
        let queue = Arc::clone(&self.queue);
        // Polling: the writer is no task.
        drop(
            kunci_process::timeout(within, async move {
                while !queue.is_over() {
                    kunci_process::sleep(Duration::from_millis(5)).await;
                }
            })
            .await,
        );
    }

    /// The folder that the files are in.
    pub fn folder(&self) -> &std::path::Path {
        &self.settings.folder
    }

    /// How the recording goes.
    pub fn counts(&self) -> AuditCounts {
        let counts = &self.queue.counts;
        AuditCounts {
            written: counts.written.load(Ordering::Relaxed),
            missing: counts.missing.load(Ordering::Relaxed),
            waiting: self.queue.weight() as u64,
            failures: counts.failures.load(Ordering::Relaxed),
        }
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("folder", &self.settings.folder).finish_non_exhaustive()
    }
}

impl Observer for Audit {
    fn begins(&self, node_id: u64, cluster_id: ClusterId, index: u64, log_end: u64) {
        self.queue.starts_with(log_end);
        self.queue.push_always(Said::Begins { node_id, cluster_id: cluster_id.to_string(), index });
    }

    fn applied(&self, seen: Seen) {
        self.queue.push_seen(seen);
    }

    fn will_be_skipped(&self, index: u64) {
        self.queue.push_always(Said::Covered { index });
    }

    fn skipped(&self, index: u64) {
        self.queue.push_always(Said::Skipped { index });
    }

    fn refused(&self, command: &Command, origin: &Origin, why: Option<Refusal>) {
        self.queue_denied(denied::refused(command, origin, why));
    }
}
