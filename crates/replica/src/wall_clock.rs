//! The wall clock, which goes into each entry for the people who read the audit log.
//!
//! Never: decides anything; it may jump.

use kunci_types::WallTime;
use std::time::{SystemTime, UNIX_EPOCH};

/// What it shows; `None` before 1970, where it is certainly wrong.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock, for people")]
pub(crate) fn now() -> Option<WallTime> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok().map(WallTime::from_ms)
}
