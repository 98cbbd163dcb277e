//! What the fuzz target `peer_frame` reads: bytes where another member should speak.
//!
//! Owns: that no byte makes a reader panic, and that what was read means the same when it is written again. Never: ships;
//! it is built with `--cfg fuzzing` only.

use super::frame::{Connection, Frame};
use super::handshake::{self, Answer, Hello, Invitation};
use super::raft_frames::{ANSWER_BYTES_MAX, APPEND, check_append, check_term, untag};
use super::snapshot_link::{self, Offer, offset_and_bytes};
use crate::pulse::Census;
use crate::raft_types::{Payload, TypeConfig};
use crate::storage::at_once;
use bytes::Bytes;
use kunci_core::command::Entry;
use openraft::raft::{AppendEntriesRequest, StreamAppendResult, TransferLeaderRequest, VoteRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Cursor;

/// The first bytes of a connection, and the frames after them.
pub fn stream(bytes: &[u8]) {
    let mut rest = bytes;
    drop(at_once(handshake::read::<Hello>(&mut rest)));
    let connection = Connection::over(Box::new(Cursor::new(bytes.to_vec())));
    let mut frames = connection.into_frames();
    while let Ok(Some(frame)) = at_once(frames.reader.read(ANSWER_BYTES_MAX)) {
        body(frame.kind, &frame.body);
    }
}

/// A message of the handshake, with the checksum that a guess never has.
pub fn sealed_handshake(body: &[u8]) {
    let mut message = b"kunci-p\n".to_vec();
    message.extend((body.len() as u32).to_be_bytes());
    message.extend(crc32fast::hash(body).to_be_bytes());
    message.extend(body);
    if let Ok(hello) = at_once(handshake::read::<Hello>(&mut &message[..])) {
        let _ = hello.common_version();
    }
    if let Ok(Answer::Refused(refusal)) = at_once(handshake::read::<Answer>(&mut &message[..])) {
        assert!(!refusal.text().contains(char::is_control), "it is shown to people");
    }
    drop(at_once(handshake::read::<Invitation>(&mut &message[..])));
}

/// The body of a frame, as each purpose would read it. The kind says which.
pub fn body(kind: u8, body: &[u8]) {
    let frame = Frame { kind, body: Bytes::copy_from_slice(body) };
    match kind {
        b'a' => {
            let Some((_, request)) = read::<(u64, AppendEntriesRequest<TypeConfig>)>(&frame) else { return };
            drop(check_append(request.vote.leader_id.voted_for, &request));
            for entry in request.entries {
                if let Payload::Normal(bytes) = entry.payload {
                    drop(Entry::decode(&bytes.0));
                }
            }
        }
        b'r' => drop(read::<(u64, StreamAppendResult<TypeConfig>)>(&frame)),
        b'v' => drop(tagged::<VoteRequest<TypeConfig>>(&frame)),
        b't' => drop(tagged::<TransferLeaderRequest<TypeConfig>>(&frame)),
        b'p' => drop(tagged::<Census>(&frame)),
        b'w' => drop(tagged::<String>(&frame)),
        b'o' => {
            let Some(offer) = read::<Offer>(&frame) else { return };
            drop(check_term(offer.vote.leader_id.voted_for, &offer.vote, offer.meta.last_log_id));
        }
        b'd' => drop(read::<snapshot_link::Answer>(&frame)),
        b's' => drop(offset_and_bytes(&frame)),
        APPEND..=u8::MAX | 0 => drop(untag(&frame)),
    }
}

fn tagged<T: Serialize + DeserializeOwned>(frame: &Frame) -> Option<T> {
    read(&untag(frame).ok()?.1)
}

/// Reads a value, and the same again from what it is written as.
fn read<T: Serialize + DeserializeOwned>(frame: &Frame) -> Option<T> {
    let value: T = frame.value().ok()?;
    let written = Frame::holding(frame.kind, &value).ok()?;
    let again: T = written.value().ok()?;
    assert_eq!(Frame::holding(frame.kind, &again).ok()?, written);
    Some(value)
}
