//! The snapshot that is coming in, as far as it has come.
//!
//! Owns: the one file of it, who may write to it, and the room on the disk that has to stay. Never: more than one
//! file: a node follows one leader.

use super::{HALF_KEPT_FOR, Offer};
use crate::disk::RESERVE_BYTES;
use crate::snapshot_store::{SnapshotFile, SnapshotReceiver, SnapshotStore};
use crate::storage::{Files, work};
use bytes::Bytes;
use kunci_process::sleep;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard, watch};

/// The place of the snapshot that is coming in. A clone is another handle to the same.
#[derive(Clone)]
pub(in crate::transport) struct HalfReceived {
    slot: Arc<Slot>,
}

struct Slot {
    /// Held by the connection that takes the snapshot in.
    half: Mutex<Option<Half>>,
    /// The number of the newest connection. The one before it is most likely dead and gives the file up.
    newest: watch::Sender<u64>,
    /// Free space that has to stay.
    reserve_bytes: u64,
}

/// A file and how far it has come.
pub(super) struct Half {
    from: u64,
    offer: Offer,
    files: Arc<dyn Files>,
    folder: PathBuf,
    receiver: SnapshotReceiver,
}

impl Default for HalfReceived {
    fn default() -> Self {
        Self::with_reserve(RESERVE_BYTES)
    }
}

impl HalfReceived {
    /// Leaves so much of the disk free.
    pub(in crate::transport) fn with_reserve(reserve_bytes: u64) -> Self {
        let slot = Slot { half: Mutex::default(), newest: watch::Sender::new(0), reserve_bytes };
        Self { slot: Arc::new(slot) }
    }

    /// Makes the caller's the newest connection: gives its number, and how to see that there is a newer one.
    pub(super) fn take_over(&self) -> (u64, watch::Receiver<u64>) {
        let mut number = 0;
        self.slot.newest.send_modify(|newest| {
            *newest += 1;
            number = *newest;
        });
        (number, self.slot.newest.subscribe())
    }

    /// Waits until no other connection uses the file.
    pub(super) async fn lock(&self) -> MutexGuard<'_, Option<Half>> {
        self.slot.half.lock().await
    }

    /// Begins a file.
    ///
    /// # Errors
    /// When there isn't enough room on the disk for all of it, or it can't be made.
    pub(super) async fn begin(&self, store: &SnapshotStore, from: u64, offer: Offer) -> io::Result<Half> {
        let (store, reserve_bytes) = (store.clone(), self.slot.reserve_bytes);
        let files = Arc::clone(store.files());
        work(&Arc::clone(&files), async move {
            let folder = store.folder().to_owned();
            check_room(&*files, &folder, offer.bytes, reserve_bytes)?;
            Ok(Half { from, offer, files, folder, receiver: store.receive()? })
        })
        .await
    }

    /// Writes a piece.
    ///
    /// # Errors
    /// When it isn't the piece that follows, or there isn't enough room, or the disk fails. The file is removed.
    pub(super) async fn take(&self, mut half: Half, offset: u64, bytes: Bytes) -> io::Result<Half> {
        let reserve_bytes = self.slot.reserve_bytes;
        work(&Arc::clone(&half.files), async move {
            // Others write to this disk too.
            check_room(&*half.files, &half.folder, bytes.len() as u64, reserve_bytes)?;
            half.receiver.take(offset, &bytes)?;
            Ok(half)
        })
        .await
    }

    /// Removes the file when no other connection has come to go on with it. When the node stops it goes with the
    /// last handle to this.
    pub(super) fn forget_later(&self, number: u64) {
        let slot = Arc::downgrade(&self.slot);
        kunci_process::spawn(async move {
            sleep(HALF_KEPT_FOR).await;
            if let Some(slot) = slot.upgrade()
                && *slot.newest.borrow() == number
            {
                drop(slot.half.lock().await.take());
            }
        });
    }
}

impl Half {
    /// Whether this is the beginning of what is offered: the same file of the same sender.
    pub(super) fn is_of(&self, from: u64, offer: &Offer) -> bool {
        self.from == from && self.offer.meta == offer.meta && self.offer.bytes == offer.bytes
    }

    pub(super) fn received(&self) -> u64 {
        self.receiver.received()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.received() >= self.offer.bytes
    }

    /// Checks the whole file. Blocks.
    pub(super) async fn finish(self) -> io::Result<SnapshotFile> {
        let file = self.receiver.finish().await?;
        if *file.meta() == self.offer.meta {
            return Ok(file);
        }
        drop(self.files.remove(file.path()));
        let text =
            format!("it covers {:?}, expected {:?}", file.meta().last_log_id, self.offer.meta.last_log_id);
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    }
}

fn check_room(files: &dyn Files, folder: &Path, bytes: u64, reserve_bytes: u64) -> io::Result<()> {
    let free = files.free_bytes(folder)?;
    if free >= bytes.saturating_add(reserve_bytes) {
        return Ok(());
    }
    let text = format!(
        "the disk of {} has {} MiB free, expected {} MiB for the snapshot beside a reserve of {} MiB; make room there",
        folder.display(),
        free >> 20,
        bytes >> 20,
        reserve_bytes >> 20
    );
    Err(io::Error::new(io::ErrorKind::StorageFull, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft_types::{SnapshotMeta, Vote};
    use openraft::impls::leader_id_std::LeaderId;
    use std::time::Duration;

    /// A leader that never comes back must not cost the disk its room for good.
    #[tokio::test(start_paused = true)]
    async fn what_was_received_is_kept_for_a_minute_and_not_longer() {
        let folder = tempfile::tempdir().unwrap();
        let cluster_id = "00112233445566778899aabbccddeeff".parse().unwrap();
        let store = SnapshotStore::open(folder.path(), cluster_id, None).unwrap();
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        let vote = Vote { leader_id: LeaderId { term: 1, voted_for: 2 }, committed: true };
        let offer = Offer { vote, meta: SnapshotMeta::default(), bytes: 10 };

        let half_received = HalfReceived::with_reserve(0);
        let (number, _) = half_received.take_over();
        let half = half_received.begin(&store, 2, offer.clone()).await.unwrap();
        let half = half_received.take(half, 0, Bytes::from_static(b"abc")).await.unwrap();
        assert!(half.is_of(2, &offer) && !half.is_of(3, &offer));
        *half_received.lock().await = Some(half);
        half_received.forget_later(number);
        sleep(HALF_KEPT_FOR - Duration::from_secs(1)).await;
        assert_eq!(files(), 1);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(files(), 0);

        let (number, _) = half_received.take_over();
        *half_received.lock().await = Some(half_received.begin(&store, 2, offer).await.unwrap());
        half_received.forget_later(number);
        half_received.take_over();
        sleep(HALF_KEPT_FOR * 2).await;
        assert_eq!(files(), 1, "a newer connection goes on with it");
        drop(half_received);
        assert_eq!(files(), 0, "the node stops");
    }
}
