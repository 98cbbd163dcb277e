//! Entries and heartbeats of a leader, one after another.
//!
//! Owns: the order of the answers, and how much may be under way. Never: takes more after an answer that isn't a
//! success: what follows in the pipe rests on what was refused.

use super::super::frame::{BODY_BYTES_MAX, Connection, Frame, FrameWriter, Frames};
use super::super::raft_frames::{
    APPEND, IDLE_MAX, IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX, REFUSED, check_append, frames, in_time, send_answer,
};
use super::{Ended, Host};
use crate::raft_types::TypeConfig;
use futures::{StreamExt, stream};
use kunci_process::timeout;
use openraft::errors::Fatal;
use openraft::raft::{AppendEntriesRequest, StreamAppendResult};
use std::collections::VecDeque;
use std::pin::pin;
use tokio::sync::mpsc;

type Answer = Result<StreamAppendResult<TypeConfig>, Fatal<TypeConfig>>;

pub(super) async fn serve(host: &Host, from: u64, connection: Connection) -> Result<(), Ended> {
    let Frames { reader, mut writer } = connection.into_frames();
    let mut requests = frames(reader, BODY_BYTES_MAX);
    // When this function returns the library's side ends too, for lack of a sender.
    let (to_raft, fed) = mpsc::channel(IN_FLIGHT_MAX);
    let fed = stream::unfold(fed, |mut fed| async { Some((fed.recv().await?, fed)) });
    // A group of entries gets on disk together, and its answers leave together.
    let mut answers = pin!(host.raft.stream_append(fed).ready_chunks(IN_FLIGHT_MAX));
    let mut under_way = UnderWay::default();
    loop {
        tokio::select! {
            biased;
            ready = answers.next() => {
                let Some(ready) = ready else { return Ok(()) };
                let numbered = ready.into_iter().zip(under_way.take());
                if send_answers(&mut writer, numbered.collect()).await? == After::End {
                    return Ok(());
                }
            }
            request = timeout(IDLE_MAX, requests.next()), if under_way.has_room() => {
                let frame = match request {
                    Ok(Some(frame)) => frame?,
                    Ok(None) => return Ok(()),
                    // What was read is still on its way to the disk.
                    Err(_) if under_way.is_any() => continue,
                    Err(_) => return Err(Ended::Idle),
                };
                let (number, request) = match check(from, &frame) {
                    Ok(request) => request,
                    Err(what) => return refuse(&mut writer, what).await,
                };
                host.roster.heard_from(from);
                under_way.add(number, frame.body.len());
                // There is room for as many as may be under way.
                if to_raft.try_send(request).is_err() {
                    return Err(Ended::Stopped("it takes no entries".to_owned()));
                }
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum After {
    GoOn,
    End,
}

/// The answers with the numbers of their requests. They leave in one piece.
async fn send_answers(writer: &mut FrameWriter, ready: Vec<(Answer, u64)>) -> Result<After, Ended> {
    let mut after = After::GoOn;
    for (answer, number) in ready {
        let answer = answer.map_err(|fatal| Ended::Stopped(fatal.to_string()))?;
        in_time(writer.write(&Frame::holding(APPEND, &(number, &answer))?)).await?;
        if answer.is_err() {
            after = After::End;
            break;
        }
    }
    in_time(writer.flush()).await?;
    Ok(after)
}

fn check(from: u64, frame: &Frame) -> Result<(u64, AppendEntriesRequest<TypeConfig>), String> {
    if frame.kind != APPEND {
        return Err(format!("a frame of kind {} on a connection for entries", frame.kind));
    }
    let (number, request) = frame.value().map_err(|error| error.to_string())?;
    check_append(from, &request)?;
    Ok((number, request))
}

async fn refuse(writer: &mut FrameWriter, what: String) -> Result<(), Ended> {
    send_answer(writer, &Frame::holding(REFUSED, &what)?).await?;
    Err(Ended::Refused(what))
}

/// The requests that have no answer yet.
#[derive(Default)]
struct UnderWay {
    /// Number and bytes of each, oldest first.
    requests: VecDeque<(u64, usize)>,
    bytes: usize,
}

impl UnderWay {
    fn add(&mut self, number: u64, bytes: usize) {
        self.requests.push_back((number, bytes));
        self.bytes += bytes;
    }

    /// The numbers of the requests that have their answers now: as many as are asked for, oldest first.
    fn take(&mut self) -> impl Iterator<Item = u64> {
        std::iter::from_fn(|| {
            let (number, bytes) = self.requests.pop_front()?;
            self.bytes -= bytes;
            Some(number)
        })
    }

    fn is_any(&self) -> bool {
        !self.requests.is_empty()
    }

    fn has_room(&self) -> bool {
        self.requests.len() < IN_FLIGHT_MAX && self.bytes < IN_FLIGHT_BYTES_MAX
    }
}
