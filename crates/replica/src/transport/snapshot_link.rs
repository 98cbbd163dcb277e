//! A snapshot on its way from a leader to a member that is too far behind for entries.
//!
//! Owns: the frames of the purpose `snapshot`. Never: looks into the file: offsets and bytes only; each frame has its
//! checksum, and the file has its own. Next: `snapshot_link/send.rs`, `snapshot_link/receive.rs`.
//!
//! ```text
//! sender    OFFER (vote, meta, bytes)       receiver  FROM offset, or DONE at once when it has it already
//! sender    PIECE offset u64, bytes         receiver  TAKEN offset, when it is written
//! sender    …                               receiver  DONE response, or FAILED text
//!                                           receiver  WORKING, at least every half a second, whatever it does
//! ```
//!
//! The sender is at most [`WINDOW_BYTES`] ahead of what the receiver has written. When a connection breaks, the
//! receiver keeps what it has for a while, and the next offer of the same file goes on there. The time that checking
//! and installing take is not limited as long as the receiver says that it works (case C47).

mod half;
mod receive;
mod send;

use super::frame::Frame;
use super::raft_frames::FrameStream;
use crate::raft_types::{SnapshotMeta, TypeConfig, Vote};
use bytes::{BufMut, Bytes, BytesMut};
use futures::StreamExt;
pub(super) use half::HalfReceived;
use openraft::raft::SnapshotResponse;
pub(super) use receive::receive;
pub(super) use send::send;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;

/// Bytes of one piece.
pub(super) const PIECE_BYTES: usize = 1 << 20;
/// Bytes that may be on the way.
pub(super) const WINDOW_BYTES: u64 = 4 << 20;
/// The most bytes of a frame. An offer holds the membership, a piece its offset.
const BYTES_MAX: usize = PIECE_BYTES + (1 << 10);
/// How often the receiver says that it works.
const WORKING_EVERY: Duration = Duration::from_millis(400);
/// A receiver that is silent for this long is gone: it misses five times.
const SILENT_MAX: Duration = Duration::from_secs(2);
/// How long the receiver waits for the next piece. A sender that lives sends one as soon as it may.
const PIECE_WITHIN: Duration = Duration::from_secs(30);
/// How long what was received of a broken transfer is kept.
const HALF_KEPT_FOR: Duration = Duration::from_secs(60);

pub(super) const OFFER: u8 = 1;
pub(super) const PIECE: u8 = 2;
pub(super) const ANSWER: u8 = 3;

/// What the sender has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Offer {
    /// Of the leader that sends it.
    pub(super) vote: Vote,
    pub(super) meta: SnapshotMeta,
    /// Bytes of the file.
    pub(super) bytes: u64,
}

/// What the receiver says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    /// Send from this offset of the file on.
    From(u64),
    /// All before this offset is written.
    Taken(u64),
    /// It is busy with the disk, or waits.
    Working,
    /// The snapshot is installed, or this leader's time is over.
    Done(SnapshotResponse<TypeConfig>),
    /// It couldn't take the snapshot. The text is for people.
    Failed(String),
}

/// A piece with its place in the file.
pub(super) fn piece(offset: u64, bytes: &[u8]) -> Frame {
    let mut body = BytesMut::with_capacity(size_of::<u64>() + bytes.len());
    body.put_u64(offset);
    body.put_slice(bytes);
    Frame { kind: PIECE, body: body.freeze() }
}

/// Reads a piece.
pub(super) fn offset_and_bytes(frame: &Frame) -> io::Result<(u64, Bytes)> {
    match frame.body.split_first_chunk() {
        Some((offset, _)) if frame.kind == PIECE => {
            Ok((u64::from_be_bytes(*offset), frame.body.slice(size_of::<u64>()..)))
        }
        _ => Err(unexpected(&format!("a frame of kind {} with {} bytes", frame.kind, frame.body.len()))),
    }
}

/// The next frame; the end of the connection is an error here.
async fn next(frames: &mut FrameStream) -> io::Result<Frame> {
    frames.next().await.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))
}

fn unexpected(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is not expected here"))
}
