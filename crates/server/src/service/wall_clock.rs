//! The wall clock, for people only: `expiresAt` and the like.
//!
//! Owns: the only reading of it in this crate. Never: decides anything; it may jump.

use jiff::Timestamp;
use std::time::{Duration, SystemTime};

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the wall clock, for texts that people read"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Now, in ms since 1970; 0 for a clock that is before that.
pub(crate) fn ms_since_1970() -> u64 {
    let since = now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The time `ms` from now in RFC 3339, UTC, to the millisecond.
pub(super) fn in_ms(ms: u64) -> String {
    text(now().checked_add(Duration::from_millis(ms)))
}

/// The time `ms` ago in RFC 3339, UTC, to the millisecond.
pub(super) fn ms_ago(ms: u64) -> String {
    text(now().checked_sub(Duration::from_millis(ms)))
}

/// A clock that shows no year from -9999 to 9999 is broken: the last time that can be written stands for it.
fn text(at: Option<SystemTime>) -> String {
    let at = at.and_then(|at| Timestamp::try_from(at).ok()).unwrap_or(Timestamp::MAX);
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_to_the_millisecond() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_000);
        assert_eq!(text(Some(at)), "2023-11-14T22:13:20.000Z");
        assert_eq!(text(None), "9999-12-30T22:00:00.999Z");
    }
}
