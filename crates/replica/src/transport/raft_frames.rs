//! What the frames on the Raft connections are.
//!
//! Owns: the kinds of frames of the purposes `append` and `ask`, their bounds, and whether what a node says is its
//! own to say. Never: sends one. The frames of a snapshot are in `snapshot_link.rs`.
//!
//! ```text
//! append   caller APPEND (number, request)   other end, in the same order   APPEND (number, answer)
//! ask      caller kind (tag, question)      other end, in any order         kind (tag, answer)
//! both                                      other end, and then it closes   REFUSED text, or (tag, text)
//! ```

use super::frame::{Frame, FrameReader, FrameWriter};
use crate::raft_types::{LogId, TypeConfig, Vote};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use kunci_process::timeout;
use openraft::raft::AppendEntriesRequest;
use std::io;
use std::time::Duration;

/// Entries, or none for a heartbeat, and the answer to them.
pub(super) const APPEND: u8 = 1;
/// A candidate asks for a vote.
pub(super) const VOTE: u8 = 2;
/// Somebody who would like to stand asks whether it would get a vote.
pub(super) const PRE_VOTE: u8 = 3;
/// A leader names its successor.
pub(super) const TRANSFER: u8 = 4;
/// How a member is, and how the others are.
pub(super) const PULSE: u8 = 5;
/// The other end doesn't answer this, and says why.
pub(super) const REFUSED: u8 = 255;

/// The most bytes of an answer to an append.
pub(super) const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The most bytes of a question or its answer: a census names every member.
pub(super) const ASK_BYTES_MAX: usize = 1 << 20;
/// Requests of one connection that may wait for their answers.
pub(super) const IN_FLIGHT_MAX: usize = 64;
/// Bytes of such requests; one request alone may have more.
pub(super) const IN_FLIGHT_BYTES_MAX: usize = 16 << 20;
/// A connection on which nothing comes for this long is ended. Its owner makes another when it needs one.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(60);
/// How long an answer may take to leave: they are small, so the other end doesn't read any more.
const ANSWER_LEAVES_WITHIN: Duration = Duration::from_secs(5);

/// FrameStream as they come in; ends when the other end closes. Unlike a read, waiting for the next can be given up.
pub(super) type FrameStream = BoxStream<'static, io::Result<Frame>>;

pub(super) fn frames(reader: FrameReader, body_bytes_max: usize) -> FrameStream {
    stream::try_unfold(reader, move |mut reader| async move {
        Ok(reader.read(body_bytes_max).await?.map(|frame| (frame, reader)))
    })
    .boxed()
}

/// Sends an answer.
pub(super) async fn send_answer(writer: &mut FrameWriter, frame: &Frame) -> io::Result<()> {
    in_time(writer.send(frame)).await
}

/// Gives a write of answers up that takes too long. Nothing can follow it then.
pub(super) async fn in_time(writing: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    match timeout(ANSWER_LEAVES_WITHIN, writing).await {
        Ok(written) => written,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the other end doesn't read its answers")),
    }
}

/// Splits the tag off a question or its answer.
pub(super) fn untag(frame: &Frame) -> io::Result<(u64, Frame)> {
    let (tag, rest) = postcard::take_from_bytes(&frame.body).map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidData, format!("a frame without a tag: {error}"))
    })?;
    Ok((tag, Frame { kind: frame.kind, body: frame.body.slice_ref(rest) }))
}

/// Whether node `from` may say something in the name of `vote`: a node speaks for itself only.
///
/// # Errors
/// Says who spoke for whom.
pub(super) fn check_speaker(from: u64, vote: &Vote) -> Result<(), String> {
    let named = vote.leader_id.voted_for;
    if named == from {
        return Ok(());
    }
    Err(format!("node {from} speaks for node {named}"))
}

/// Whether the entries of a request can be what a leader sends. The library takes that for granted.
///
/// # Errors
/// Says what is wrong with them.
pub(super) fn check_append(from: u64, request: &AppendEntriesRequest<TypeConfig>) -> Result<(), String> {
    check_speaker(from, &request.vote)?;
    if !request.vote.committed {
        return Err(format!("node {from} sends entries without having been elected"));
    }
    let mut before = request.prev_log_id;
    for entry in &request.entries {
        let (id, expected) = (entry.log_id, before.map_or(0, |before| before.index + 1));
        if id.index != expected {
            return Err(format!("node {from} sends entry {} where {expected} is expected", id.index));
        }
        if before.is_some_and(|before| id.leader_id < before.leader_id) {
            return Err(format!("node {from} sends entry {} with a term that goes back", id.index));
        }
        before = Some(id);
    }
    check_term(from, &request.vote, before)
}

/// Whether a leader may have an entry: none is of a later term than its own.
///
/// # Errors
/// Says which entry of which term.
pub(super) fn check_term(from: u64, vote: &Vote, last: Option<LogId>) -> Result<(), String> {
    match last {
        Some(last) if last.leader_id.term > vote.leader_id.term => Err(format!(
            "node {from} sends entry {} of term {} as leader of term {}",
            last.index, last.leader_id.term, vote.leader_id.term
        )),
        _ => Ok(()),
    }
}
