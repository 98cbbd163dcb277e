//! What the door has to say, not more often than a person reads.
//!
//! Owns: one line for each kind of trouble in a while, with how often it came up. Never: text of a stranger that
//! isn't bounded.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// From one line of a kind to the next.
const EVERY: Duration = Duration::from_secs(10);

/// What was said, by kind. The kinds are words of this program, so they are few.
#[derive(Debug, Default)]
pub(super) struct Said {
    kinds: Mutex<BTreeMap<&'static str, Kind>>,
}

#[derive(Debug)]
struct Kind {
    at: Instant,
    unsaid: u64,
}

impl Said {
    /// Where trouble comes from that no peer makes.
    pub(super) const NOBODY: &'static str = "nobody";

    /// Says it, or only counts it.
    pub(super) fn say(&self, kind: &'static str, from: &dyn Display, what: &dyn Display) {
        if let Some(times) = self.times(kind) {
            tracing::warn!(%from, times, "a connection at the peer door came to nothing: {what}");
        }
    }

    /// How often it came up since it was last said, this time too; `None` if it isn't to be said now.
    fn times(&self, kind: &'static str) -> Option<u64> {
        let now = kunci_process::now();
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(said) = kinds.get_mut(kind) else {
            kinds.insert(kind, Kind { at: now, unsaid: 0 });
            return Some(1);
        };
        said.unsaid += 1;
        if now.saturating_duration_since(said.at) < EVERY {
            return None;
        }
        said.at = now;
        Some(std::mem::take(&mut said.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flood of one kind of trouble neither fills the log nor hides another kind.
    #[tokio::test(start_paused = true)]
    async fn each_kind_is_said_once_in_a_while_with_its_count() {
        let said = Said::default();
        assert_eq!(said.times("busy"), Some(1));
        assert_eq!(said.times("busy"), None);
        assert_eq!(said.times("removed"), Some(1));

        tokio::time::advance(EVERY).await;
        assert_eq!(said.times("busy"), Some(2));
    }
}
