//! The one writer of a plain log.
//!
//! Owns: the order of writes, syncs and removals, as the library's thread has it: many writes, one sync; a full file
//! is synced before the next one is written to; a file is removed after the note of its purge is on disk. Never: goes
//! on after a failure.

use super::super::flushed::OnFlushed;
use super::Sync;
use crate::storage::{Files, OpenFile};
use raft_log::Callback;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What the writer is to do next.
pub(super) enum Order {
    /// Write behind what is there, and tell somebody.
    Write { bytes: Vec<u8>, sync: Sync, told: Option<OnFlushed> },
    /// Write to this new file from now on, once its name is on disk.
    Begin(Arc<dyn OpenFile>),
    /// Remove files.
    Remove(Vec<PathBuf>),
}

struct Writer {
    disk: Arc<dyn Files>,
    folder: PathBuf,
    /// The file that is written to is the last; the others aren't synced yet.
    files: VecDeque<Arc<dyn OpenFile>>,
    orders: UnboundedReceiver<Order>,
}

/// Starts the writer of the log in `folder`, which writes to `file`. It ends with the sender, or with its first
/// failure.
pub(super) fn start(
    disk: Arc<dyn Files>,
    folder: PathBuf,
    file: Arc<dyn OpenFile>,
) -> UnboundedSender<Order> {
    let (sender, orders) = unbounded_channel();
    let mut writer = Writer { disk, folder, files: VecDeque::from([file]), orders };
    kunci_process::spawn(async move {
        if let Err(error) = writer.run().await {
            tracing::error!(%error, folder = %writer.folder.display(), "the log's writer has stopped");
        }
    });
    sender
}

impl Writer {
    async fn run(&mut self) -> io::Result<()> {
        let mut next = None;
        loop {
            let order = match next.take() {
                Some(order) => order,
                None => match self.orders.recv().await {
                    Some(order) => order,
                    None => return Ok(()),
                },
            };
            match order {
                Order::Write { bytes, sync, told } => {
                    next = self.write_batch(bytes, sync, told).await?;
                }
                Order::Begin(file) => {
                    self.files.push_back(file);
                    self.disk.sync_folder(&self.folder).await?;
                }
                Order::Remove(paths) => {
                    paths.iter().try_for_each(|path| self.disk.remove(path))?;
                    self.disk.sync_folder(&self.folder).await?;
                }
            }
        }
    }

    /// Writes, with whatever else waits to be written. Gives back the first order that is something else.
    async fn write_batch(
        &mut self,
        mut bytes: Vec<u8>,
        mut sync: Sync,
        told: Option<OnFlushed>,
    ) -> io::Result<Option<Order>> {
        let mut to_tell = Vec::from_iter(told);
        let next = loop {
            match self.orders.try_recv() {
                Ok(Order::Write { bytes: more, sync: wanted, told }) => {
                    bytes.extend(more);
                    sync = if wanted == Sync::Wanted { wanted } else { sync };
                    to_tell.extend(told);
                }
                Ok(other) => break Some(other),
                Err(_) => break None,
            }
        };
        let written = self.write_and_sync(&bytes, sync).await;
        for told in to_tell {
            let written = written.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()));
            told.send(written.copied());
        }
        written.map(|()| next)
    }

    async fn write_and_sync(&mut self, bytes: &[u8], sync: Sync) -> io::Result<()> {
        if let Some(file) = self.files.back()
            && !bytes.is_empty()
        {
            file.append(bytes)?;
        }
        if sync == Sync::NotYet {
            return Ok(());
        }
        while self.files.len() > 1 {
            if let Some(full) = self.files.pop_front() {
                full.sync_data().await?;
            }
        }
        match self.files.front() {
            Some(file) => file.sync_data().await,
            None => Ok(()),
        }
    }
}
