//! What the fuzz target `snapshot` reads: bytes where a snapshot should be.
//!
//! Owns: that no byte makes a reader panic, or take more memory than a chunk may have. Never: ships; it is built with
//! `--cfg fuzzing` only.

use super::{MAGIC, Reader, SNAPSHOT_FORMAT, checksum_of, trailer};
use kunci_core::Restore;

/// Reads a file to its end, or to its damage, and restores the state in it.
pub fn snapshot_file(bytes: &[u8]) {
    let Ok(mut reader) = Reader::begin(bytes) else { return };
    let mut restore = Restore::default();
    while let Ok(Some(chunk)) = reader.next_chunk() {
        if restore.chunk(&chunk).is_err() {
            return;
        }
    }
    drop(restore.finish());
}

/// As [`snapshot_file`], of a file with this header and this one chunk, and the checksums that a guess never has.
pub fn sealed_snapshot(header: &[u8], chunk: &[u8]) {
    let mut file = MAGIC.to_vec();
    file.extend(SNAPSHOT_FORMAT.to_be_bytes());
    file.extend((header.len() as u32).to_be_bytes());
    file.extend(header);
    file.extend(crc32fast::hash(&file).to_be_bytes());
    if !chunk.is_empty() {
        let length = (chunk.len() as u32).to_be_bytes();
        file.extend(length);
        file.extend(chunk);
        file.extend(checksum_of(&[&length, chunk]).to_be_bytes());
    }
    file.extend(trailer(u64::from(!chunk.is_empty()), chunk.len() as u64, crc32fast::hash(chunk)));
    snapshot_file(&file);
}
