//! Signals that ask a node to stop.

use super::ground::StopSignals;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// TERM and INT, caught from when this is made.
pub(super) struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    /// Catches both from now on.
    pub(super) fn catch() -> io::Result<Self> {
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }
}

impl StopSignals for Signals {
    async fn next(&mut self) -> i32 {
        tokio::select! {
            biased;
            _ = self.term.recv() => SignalKind::terminate().as_raw_value(),
            _ = self.int.recv() => SignalKind::interrupt().as_raw_value(),
        }
    }
}

/// What people call it.
pub(super) fn name(signal: i32) -> &'static str {
    if signal == SignalKind::interrupt().as_raw_value() { "INT" } else { "TERM" }
}
