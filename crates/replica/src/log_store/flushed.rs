//! Who is told that a write is on disk.
//!
//! Owns: that each of them is told exactly once, whatever happens to the writer. Never: whether it is on disk.

use super::context;
use crate::disk::Syncs;
use crate::raft_types::TypeConfig;
use openraft::storage::IOFlushed;
use raft_log::Callback;
use std::io;
use tokio::sync::oneshot;

/// Who is told that a write is on disk, exactly once.
///
/// The library drops a callback unsent when its writer stopped because of an earlier failure. Silence would
/// leave the Raft core waiting for ever, so a dropped one reports the failure.
pub(crate) struct OnFlushed {
    waiting: Option<Waiting>,
    syncs: Syncs,
}

pub(super) enum Waiting {
    Raft(IOFlushed<TypeConfig>),
    Caller(oneshot::Sender<io::Result<()>>),
}

impl OnFlushed {
    pub(super) fn begin(waiting: Waiting, syncs: &Syncs) -> Self {
        syncs.begin();
        Self { waiting: Some(waiting), syncs: syncs.clone() }
    }

    fn tell(&mut self, result: io::Result<()>) {
        let Some(waiting) = self.waiting.take() else { return };
        self.syncs.end();
        match waiting {
            Waiting::Raft(flushed) => flushed.io_completed(result.map_err(context("flush the log"))),
            // A caller that stopped waiting needs no answer.
            Waiting::Caller(caller) => drop(caller.send(result)),
        }
    }
}

impl Callback for OnFlushed {
    fn send(mut self, result: io::Result<()>) {
        self.tell(result);
    }
}

impl Drop for OnFlushed {
    fn drop(&mut self) {
        self.tell(Err(io::Error::other("the log's writer has stopped after an earlier failure")));
    }
}
