//! The clock of histories.
//!
//! Owns: what "began" and "ended" of a call mean: microseconds on this machine's monotonic clock. Every client and
//! every fault reads the same one, so that they can be compared.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Now, in microseconds since the machine started.
pub(crate) fn now_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    seconds * 1_000_000 + nanos / 1_000
}

/// How long ago that was.
pub(crate) fn since(at_us: u64) -> Duration {
    Duration::from_micros(now_us().saturating_sub(at_us))
}

/// Blocks this thread.
pub(crate) fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Asks again and again, for at most `within`, until the answer is there.
pub(crate) fn wait_for<T>(within: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = now_us();
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if since(begun) > within {
            return None;
        }
        pause(20);
    }
}
