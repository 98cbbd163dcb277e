//! Bugs planted on purpose, so that the checks can't go blind.

use kunci_client::{Clock, RuntimeClock};
use std::sync::Arc;

pub(crate) fn is(_name: &str) -> bool {
    false
}

pub(crate) fn client_clock(clock: RuntimeClock) -> Arc<dyn Clock> {
    Arc::new(clock)
}
