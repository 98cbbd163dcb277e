//! The thread that writes.
//!
//! Owns: the order of lines, when a file is put aside, and what happens while the disk takes nothing: it goes on trying,
//! and the queue before it loses what doesn't fit, which is told once there is room. Never: anything that a lock waits for.

use super::files::{Current, free_bytes, keep, let_one_go, on_one_disk};
use super::project::Projector;
use super::queue::{Missing, Next, Queue, Said};
use super::{AuditSettings, tail, wall_clock};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// So much is gathered before it is written, while more waits.
const BLOCK_BYTES: usize = 128 << 10;
/// How long more may gather once all that waited is written. Each write costs two switches of the processor, which a node
/// with a thousand entries a second has better uses for.
const GATHER_FOR: Duration = Duration::from_millis(20);
/// How long the writer waits for something to do, at most.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// From one failed write to the next.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
/// From one word about failures in the log to the next, in failures.
const SAY_EVERY: u64 = 240;
/// What the audit log leaves free on the disk of the data folder: the locks are refused below half of it.
const ROOM_BYTES: u64 = 128 << 20;
/// So much is written between two looks at the room.
const LOOK_AT_ROOM_BYTES: u64 = 4 << 20;

pub(super) fn start(queue: Arc<Queue>, settings: Arc<AuditSettings>) -> io::Result<()> {
    let run = move || {
        let projector = Projector::new(settings.renewals);
        let mut writer = Writer {
            queue: Arc::clone(&queue),
            settings,
            projector,
            lines: Vec::new(),
            count: 0,
            current: None,
            began_ms: 0,
            node_id: 0,
            cluster_id: String::new(),
            looked_at: 0,
            failures: 0,
        };
        writer.run();
        queue.end();
    };
    std::thread::Builder::new().name("audit".to_owned()).spawn(run).map(drop)
}

struct Writer {
    queue: Arc<Queue>,
    settings: Arc<AuditSettings>,
    projector: Projector,
    /// Whole lines, but for the first, of which a part may be written.
    lines: Vec<u8>,
    /// How many records they are.
    count: u64,
    current: Option<Current>,
    /// When the current file began.
    began_ms: u64,
    node_id: u64,
    cluster_id: String,
    /// Bytes of the current file when the room was looked at.
    looked_at: u64,
    /// Failures one after the other.
    failures: u64,
}

impl Writer {
    fn run(&mut self) {
        loop {
            let mut is_all = true;
            match self.queue.next(if self.lines.is_empty() { LOOK_EVERY } else { Duration::ZERO }) {
                Next::Said(missing, said) => {
                    self.gap_of(missing);
                    self.said(said);
                    if self.lines.len() < BLOCK_BYTES {
                        continue;
                    }
                    is_all = false;
                }
                Next::Missing(missing) => self.gap_of(missing),
                Next::Nothing => {}
                Next::Closed if self.lines.is_empty() => break,
                Next::Closed => {}
            }
            if !self.write() {
                return;
            }
            if is_all {
                self.queue.sleep(GATHER_FOR);
            }
        }
        // Nothing is synced here: what a power cut takes is in the log, and is written again.
    }

    fn said(&mut self, said: Said) {
        match said {
            Said::Begins { node_id, cluster_id, index } => {
                (self.node_id, self.cluster_id) = (node_id, cluster_id);
                self.open_surely();
                if let Some((from, _)) = self.behind(index) {
                    self.gap(
                        "the log goes back only to a snapshot that is newer than the audit log",
                        from,
                        index,
                    );
                }
                self.projector.skip_to((index, u32::MAX));
            }
            Said::Seen(seen) => self.count += self.projector.seen(&mut self.lines, &seen),
            Said::Covered { index } => {
                let mut line = self.projector.own(&mut self.lines, "covered");
                line.number("toIndex", index);
                line.end();
                self.projector.skip_to((index, u32::MAX));
                self.write();
                if let Some(current) = &mut self.current {
                    let _ = current.sync();
                }
            }
            Said::Skipped { index } => {
                if let Some((from, _)) = self.behind(index) {
                    self.gap("this node was behind, and got the state of another one", from, index);
                }
                self.projector.skip_to((index, u32::MAX));
            }
            Said::Denied(denied) => {
                self.projector.denied(&mut self.lines, self.node_id, &denied);
                self.count += 1;
            }
        }
    }

    /// The entries up to `index` that aren't recorded.
    fn behind(&self, index: u64) -> Option<(u64, u64)> {
        let recorded = self.projector.after().map_or(0, |(index, _)| index);
        (recorded < index).then_some((recorded + 1, index))
    }

    fn gap(&mut self, why: &str, from: u64, to: u64) {
        let mut line = self.projector.own(&mut self.lines, "gap");
        line.text("reason", why);
        line.number("fromIndex", from);
        line.number("toIndex", to);
        line.end();
        self.count += 1;
    }

    fn gap_of(&mut self, missing: Missing) {
        if missing.is_nothing() {
            return;
        }
        // After a restart, entries are shown again that are recorded.
        let recorded = self.projector.after();
        let entries = missing.entries.filter(|(_, to)| recorded.is_none_or(|after| after < (*to, u32::MAX)));
        if missing.entries.is_some() && entries.is_none() {
            return;
        }
        let mut line = self.projector.own(&mut self.lines, "gap");
        line.text("reason", "more came than could be written");
        line.number("missing", missing.count);
        if let Some((from, to)) = entries {
            line.number("fromIndex", from);
            line.number("toIndex", to);
            line.end();
            self.projector.skip_to((to, u32::MAX));
        } else {
            line.end();
        }
        self.count += 1;
    }

    /// Opens the files and sees how far they go. Goes on trying until that is known, or the node stops.
    fn open_surely(&mut self) {
        loop {
            match self.open() {
                Ok(()) => return,
                Err(error) => self.failed("open", &error),
            }
            if self.queue.is_closed() {
                return;
            }
            self.queue.sleep(AGAIN_AFTER);
        }
    }

    fn open(&mut self) -> io::Result<()> {
        let folder = &self.settings.folder;
        let mut current = Current::open(folder)?;
        let left = tail::look(folder, &mut current)?;
        let is_of_another = left.cluster_id.as_ref().is_some_and(|of| *of != self.cluster_id);
        if is_of_another {
            tracing::warn!(
                folder = %folder.display(),
                "the audit log here is of another cluster: it is put aside, and a new one begins"
            );
        } else if let Some(after) = left.after {
            self.projector.skip_to(after);
        }
        self.began_ms = left.began_ms.unwrap_or_else(wall_clock::now_ms);
        let is_new = current.bytes() == 0;
        self.current = Some(current);
        if is_of_another && !is_new {
            self.put_aside()?;
        } else if is_new || is_of_another {
            self.begin_file();
        }
        Ok(())
    }

    /// The first line of a file says whose it is.
    fn begin_file(&mut self) {
        self.began_ms = wall_clock::now_ms();
        let mut first = Vec::new();
        let mut line = self.projector.own(&mut first, "log");
        line.text("clusterId", &self.cluster_id);
        line.number("nodeId", self.node_id);
        line.end();
        first.append(&mut self.lines);
        self.lines = first;
    }

    fn put_aside(&mut self) -> io::Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let when = wall_clock::seconds_text(wall_clock::now_ms() / 1_000);
        self.current = Some(current.put_aside(&when)?);
        self.looked_at = 0;
        self.begin_file();
        let others = self.settings.total_bytes_max.saturating_sub(self.settings.file_bytes_max);
        keep(&self.settings.folder, others)
    }

    /// Writes all lines. False when the node stops and they couldn't be.
    fn write(&mut self) -> bool {
        loop {
            match self.try_write() {
                Ok(()) => {
                    if self.failures > 0 {
                        tracing::info!(folder = %self.settings.folder.display(), "the audit log is written again");
                    }
                    self.failures = 0;
                    self.queue.counts.written.fetch_add(std::mem::take(&mut self.count), Ordering::Relaxed);
                    return true;
                }
                Err(error) => self.failed("write", &error),
            }
            if self.queue.is_closed() {
                return false;
            }
            self.queue.sleep(AGAIN_AFTER);
        }
    }

    fn try_write(&mut self) -> io::Result<()> {
        self.put_aside_if_due()?;
        if self.lines.is_empty() {
            return Ok(());
        }
        self.look_at_room()?;
        if self.current.is_none() {
            self.current = Some(Current::open(&self.settings.folder)?);
        }
        while let (Some(current), false) = (&mut self.current, self.lines.is_empty()) {
            current.sync_in_time()?;
            let written = current.write_some(&self.lines)?;
            self.lines.drain(..written);
        }
        Ok(())
    }

    /// Between blocks, and so between lines.
    fn put_aside_if_due(&mut self) -> io::Result<()> {
        let Some(current) = &self.current else { return Ok(()) };
        // Behind a write that failed, a part of a line may be there; the rest belongs to it.
        if self.failures > 0 || current.bytes() == 0 {
            return Ok(());
        }
        let age_ms = wall_clock::now_ms().saturating_sub(self.began_ms);
        let is_old = u128::from(age_ms) >= self.settings.file_age_max.as_millis() && !self.lines.is_empty();
        if current.bytes() >= self.settings.file_bytes_max || is_old {
            self.put_aside()?;
        }
        Ok(())
    }

    /// On the disk of the locks, room is left for them: old files go first, then nothing is written.
    fn look_at_room(&mut self) -> io::Result<()> {
        let bytes = self.current.as_ref().map_or(0, Current::bytes);
        if self.failures == 0 && bytes < self.looked_at + LOOK_AT_ROOM_BYTES && self.looked_at > 0 {
            return Ok(());
        }
        let folder = &self.settings.folder;
        if on_one_disk(folder, &self.settings.data) {
            while free_bytes(folder)? < ROOM_BYTES {
                let Some(gone) = let_one_go(folder)? else {
                    return Err(io::Error::other("the disk of the data folder is nearly full"));
                };
                tracing::warn!(file = %gone.display(), "the disk is nearly full: the oldest file of the audit log is gone");
            }
        }
        self.looked_at = bytes.max(1);
        Ok(())
    }

    fn failed(&mut self, what: &str, error: &io::Error) {
        if self.failures.is_multiple_of(SAY_EVERY) {
            let folder = self.settings.folder.display();
            tracing::error!(
                %folder, %error,
                "can't {what} the audit log: the locks go on; what doesn't fit in memory meanwhile leaves a gap"
            );
        }
        self.failures += 1;
        self.queue.counts.failures.fetch_add(1, Ordering::Relaxed);
    }
}
