//! What protected resources report: stale tokens that they refused.
//!
//! Owns: their count, and how many of them are logged. Never: changes anything; a report is an observation.

use kunci_api::FencingRejection;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Log lines in a [`WINDOW`]. A late writer in a loop mustn't fill the disk; all reports are counted.
const LINES_MAX: u32 = 50;
const WINDOW: Duration = Duration::from_secs(1);

/// The reports that this node has taken.
#[derive(Debug, Default)]
pub(super) struct Rejections {
    taken: AtomicU64,
    window: Mutex<Option<Window>>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    began: Instant,
    lines: u32,
    left_out: u64,
}

impl Rejections {
    /// Counts a report, and logs it unless too many came just before.
    pub(super) fn take(&self, rejection: &FencingRejection) {
        let FencingRejection { resource, token, current } = rejection;
        self.taken.fetch_add(1, Ordering::Relaxed);
        if let Some(left_out) = self.next_line(kunci_process::now()) {
            tracing::warn!(%resource, %token, %current, left_out, "a protected resource refused a stale token");
        }
    }

    /// How many were taken.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether there may be a line now, and how many were left out since the one before.
    fn next_line(&self, now: Instant) -> Option<u64> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let current = window.filter(|window| now.duration_since(window.began) < WINDOW);
        let left_out = window.map_or(0, |window| window.left_out);
        let open = current.unwrap_or(Window { began: now, lines: 0, left_out });
        let (next, told) = if open.lines < LINES_MAX {
            (Window { lines: open.lines + 1, left_out: 0, ..open }, Some(open.left_out))
        } else {
            (Window { left_out: open.left_out + 1, ..open }, None)
        };
        *window = Some(next);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_reports_is_logged_in_part_and_says_so() {
        let rejections = Rejections::default();
        let begun = kunci_process::now();
        let told = (0..LINES_MAX + 7).filter_map(|_| rejections.next_line(begun));
        assert_eq!(told.collect::<Vec<_>>(), vec![0; LINES_MAX as usize]);
        assert_eq!(rejections.next_line(begun + WINDOW / 2), None);
        assert_eq!(rejections.next_line(begun + WINDOW), Some(8));
        assert_eq!(rejections.next_line(begun + WINDOW), Some(0));
    }
}
