//! The bytes of one file.
//!
//! Owns: which of them are on the disk, and what a crash leaves of the others. Never: its name.

use super::Loss;
use crate::randomness::Seeded;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;
/// A file's length grows by these when it reaches the disk before its bytes.
const PAGE_BYTES: usize = 4096;
/// Fewer zeros at the end can be a sound checksum's last bytes; a file system that leaves them would have to end a file
/// right behind the beginning of a sector.
const ZEROS_MIN: usize = 4;

/// The bytes of one file, as every process sees them.
#[derive(Debug, Default)]
pub(super) struct Content {
    bytes: Vec<u8>,
    /// So many of the first are on the disk.
    synced: usize,
    /// What the disk has instead, after a cut that isn't synced yet.
    before_cut: Option<Vec<u8>>,
    /// Where the last write began.
    last_write: usize,
    /// A crash left its end cut or as zeros, and nobody cut that away yet.
    is_torn: bool,
    /// How often bytes that were there have changed, or gone.
    rewrites: u64,
}

pub(super) fn lock(file: &Arc<Mutex<Content>>) -> MutexGuard<'_, Content> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Content {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn synced(&self) -> usize {
        self.synced
    }

    #[cfg(kunci_plants)]
    pub(super) fn rewrites(&self) -> u64 {
        self.rewrites
    }

    pub(super) fn is_torn(&self) -> bool {
        self.is_torn
    }

    pub(super) fn is_unsynced(&self) -> bool {
        self.before_cut.is_some() || self.synced < self.bytes.len()
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.last_write = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn cut(&mut self, length: usize) {
        if length < self.synced && self.before_cut.is_none() {
            self.before_cut = Some(self.bytes[..self.synced].to_vec());
        }
        self.rewrites += 1;
        self.bytes.truncate(length);
        self.synced = self.synced.min(length);
        self.last_write = self.last_write.min(length);
        self.is_torn = false;
    }

    /// The first `length` bytes have reached the disk, and so has every cut.
    pub(super) fn sync(&mut self, length: usize) {
        self.synced = self.synced.max(length.min(self.bytes.len()));
        self.before_cut = None;
    }

    /// What a failed sync may do on the way: what it couldn't write is gone from memory too.
    pub(super) fn forget_unsynced(&mut self) {
        self.rewrites += 1;
        self.bytes.truncate(self.synced);
        self.last_write = self.last_write.min(self.synced);
    }

    /// The machine crashes. Says in words what is left.
    pub(super) fn crash(&mut self, loss: Loss, random: &mut Seeded) -> String {
        self.rewrites += 1;
        if let Some(before) = self.before_cut.take()
            && (loss == Loss::All || loss != Loss::Nothing && random.hits_ppm(500_000))
        {
            self.bytes = before;
            self.settle();
            return "its cut was lost".to_owned();
        }
        let (from, end) = (self.synced, self.bytes.len());
        let kept = match loss {
            Loss::All => from,
            Loss::Nothing => end,
            Loss::Some => from + random.index(end - from + 1),
            // In the middle of the last write, if that has a middle.
            Loss::Torn => {
                let first = self.last_write.max(from);
                (first + 1 + random.index((end - first).saturating_sub(1).max(1)))
                    .min(end.saturating_sub(1))
                    .max(from)
            }
        };
        let with_zeros = matches!(loss, Loss::Some | Loss::Torn) && random.hits_ppm(300_000);
        let kept_whole = if with_zeros { (kept / SECTOR_BYTES * SECTOR_BYTES).max(from) } else { kept };
        self.bytes.truncate(kept_whole);
        let mut zeros = 0;
        if with_zeros && kept_whole < end {
            let lengths = [end, end.next_multiple_of(PAGE_BYTES), kept_whole.max(kept)];
            let length = random.pick(&lengths).copied().unwrap_or(end);
            zeros = length.saturating_sub(kept_whole);
            if zeros < ZEROS_MIN {
                zeros = 0;
            }
            self.bytes.resize(kept_whole + zeros, 0);
        }
        self.settle();
        self.is_torn = kept_whole < end && (kept_whole > from || zeros > 0);
        format!("{} of {} unsynced bytes left, and {zeros} zeros", kept_whole - from, end - from)
    }

    fn settle(&mut self) {
        self.synced = self.bytes.len();
        self.last_write = self.synced;
    }

    /// Flips one bit of what is on the disk. Says which.
    pub(super) fn flip(&mut self, random: &mut Seeded) -> usize {
        self.rewrites += 1;
        let bit = random.index(self.synced * 8);
        if let Some(byte) = self.bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
        bit
    }
}
