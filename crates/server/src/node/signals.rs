//! Signals that ask a node to stop.

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

    /// The number of the next one.
    pub(super) async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.term.recv() => SignalKind::terminate().as_raw_value(),
            _ = self.int.recv() => SignalKind::interrupt().as_raw_value(),
        }
    }

    /// Does `work`, unless a signal comes first; its number then.
    pub(super) async fn or_else<T>(&mut self, work: impl Future<Output = T>) -> Result<T, i32> {
        tokio::select! {
            done = work => Ok(done),
            signal = self.next() => Err(signal),
        }
    }
}

/// What people call it.
pub(super) fn name(signal: i32) -> &'static str {
    if signal == SignalKind::interrupt().as_raw_value() { "INT" } else { "TERM" }
}
