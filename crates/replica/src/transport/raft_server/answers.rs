//! Single questions: votes, the hand-over, the pulse.
//!
//! Owns: that each gets its answer with its tag, and that none waits for another. Never: more of them at once than
//! the bound says: the connection isn't read meanwhile.

use super::super::frame::{Connection, Frame, Frames};
use super::super::raft_frames::{
    ASK_BYTES_MAX, IDLE_MAX, IN_FLIGHT_MAX, PRE_VOTE, PULSE, REFUSED, TRANSFER, VOTE, check_speaker, frames,
    send_answer, untag,
};
use super::super::roster::Standing;
use super::{Ended, Host};
use crate::raft_types::TypeConfig;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kunci_process::timeout;
use openraft::raft::{TransferLeaderRequest, VoteRequest};
use serde::Serialize;
use std::fmt::Display;

pub(super) async fn serve(host: &Host, from: u64, connection: Connection) -> Result<(), Ended> {
    let Frames { reader, mut writer } = connection.into_frames();
    let mut questions = frames(reader, ASK_BYTES_MAX);
    let mut answers = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(answered) = answers.next() => {
                let Answered { frame, refused } = answered?;
                send_answer(&mut writer, &frame).await?;
                if let Some(what) = refused {
                    return Err(Ended::Refused(what));
                }
            }
            question = timeout(IDLE_MAX, questions.next()), if answers.len() < IN_FLIGHT_MAX => match question {
                Ok(Some(frame)) => answers.push(answer(host, from, frame?)),
                Ok(None) => return Ok(()),
                Err(_) => return Err(Ended::Idle),
            },
        }
    }
}

/// The answer to a question.
struct Answered {
    frame: Frame,
    /// After this answer the connection ends, for this reason.
    refused: Option<String>,
}

async fn answer(host: &Host, from: u64, frame: Frame) -> Result<Answered, Ended> {
    let (tag, question) = untag(&frame)?;
    let raft = &host.raft;
    // Its handshake may have been before it was removed (case C40).
    if host.roster.standing(from) == Standing::Removed {
        return refused(tag, format!("node {from} is no member any more"));
    }
    match question.kind {
        kind @ (VOTE | PRE_VOTE) => {
            let request: VoteRequest<TypeConfig> = question.value()?;
            if let Err(what) = check_speaker(from, &request.vote) {
                return refused(tag, what);
            }
            let answered = if kind == VOTE { raft.vote(request).await } else { raft.pre_vote(request).await };
            holding(kind, tag, &answered.map_err(stopped)?)
        }
        TRANSFER => {
            let request: TransferLeaderRequest<TypeConfig> = question.value()?;
            if let Err(what) = check_speaker(from, request.from_leader()) {
                return refused(tag, what);
            }
            holding(TRANSFER, tag, &raft.handle_transfer_leader(request).await.map_err(stopped)?)
        }
        PULSE => holding(PULSE, tag, &(host.on_pulse)(from, question.value()?)),
        // Of a later release. It isn't wrong to ask; this one only doesn't know.
        kind => holding(REFUSED, tag, &format!("this release doesn't know questions of kind {kind}")),
    }
}

fn refused(tag: u64, what: String) -> Result<Answered, Ended> {
    Ok(Answered { frame: Frame::holding(REFUSED, &(tag, &what))?, refused: Some(what) })
}

fn holding<T: Serialize>(kind: u8, tag: u64, answer: &T) -> Result<Answered, Ended> {
    Ok(Answered { frame: Frame::holding(kind, &(tag, answer))?, refused: None })
}

fn stopped(error: impl Display) -> Ended {
    Ended::Stopped(error.to_string())
}
