//! The leader's end of a snapshot.
//!
//! Owns: how far ahead it sends, and when it gives up. Never: more than a piece of the file in memory.

use super::super::dial::{DialError, Dialer};
use super::super::frame::{Frame, FrameWriter, Frames};
use super::super::handshake::Purpose;
use super::super::raft_client::address_of;
use super::super::raft_frames::{ANSWER_BYTES_MAX, FrameStream, frames};
use super::{ANSWER, Answer, OFFER, Offer, PIECE_BYTES, SILENT_MAX, WINDOW_BYTES, next, piece, unexpected};
use crate::raft_types::{Snapshot, TypeConfig, Vote};
use crate::snapshot_store::SnapshotFile;
use crate::storage::work;
use kunci_process::timeout;
use openraft::raft::SnapshotResponse;
use std::io;
use std::pin::pin;

type Response = SnapshotResponse<TypeConfig>;

/// Why a snapshot didn't get there.
#[derive(Debug, thiserror::Error)]
pub(in crate::transport) enum NotSent {
    /// There is no connection to the member.
    #[error(transparent)]
    Connect(#[from] DialError),
    /// The connection broke, or the file can't be read.
    #[error("send a snapshot: {0}")]
    Io(#[from] io::Error),
    /// The member is silent.
    #[error("send a snapshot: the member has been silent for {SILENT_MAX:?}")]
    Silent,
    /// The member says what is wrong there.
    #[error("send a snapshot: the member can't take it: {0}")]
    Failed(String),
}

/// Sends a snapshot and waits until the member has installed it. Can be given up at any time.
///
/// # Errors
/// When it didn't get there. The next try goes on where this one ended, if it comes soon.
pub(in crate::transport) async fn send(
    dialer: &Dialer,
    to: u64,
    address: &str,
    vote: Vote,
    snapshot: &Snapshot,
) -> Result<Response, NotSent> {
    let connection = dialer.connect(to, &address_of(dialer, to, address), Purpose::Snapshot).await?;
    let Frames { reader, writer } = connection.into_frames();
    let file = snapshot.snapshot.clone();
    let offer = Offer { vote, meta: snapshot.meta.clone(), bytes: file.bytes() };
    let mut sending =
        Sending { writer, answers: frames(reader, ANSWER_BYTES_MAX), window: Window::default() };
    sending.run(&offer, file).await
}

struct Sending {
    writer: FrameWriter,
    answers: FrameStream,
    window: Window,
}

#[derive(Default)]
struct Window {
    /// Where the receiver wants to begin.
    from: Option<u64>,
    taken: u64,
    done: Option<Response>,
}

impl Sending {
    async fn run(&mut self, offer: &Offer, file: SnapshotFile) -> Result<Response, NotSent> {
        self.send(&Frame::holding(OFFER, offer)?).await?;
        let mut sent = loop {
            match (self.window.done.take(), self.window.from) {
                (Some(response), _) => return Ok(response),
                (None, Some(from)) => break from,
                (None, None) => self.window.heed(answer(&mut self.answers).await?)?,
            }
        };
        loop {
            if let Some(response) = self.window.done.take() {
                return Ok(response);
            }
            if sent < offer.bytes && sent.saturating_sub(self.window.taken) < WINDOW_BYTES {
                let from = file.clone();
                let bytes = work(file.files(), async move { from.read_at(sent, PIECE_BYTES) }).await?;
                self.send(&piece(sent, &bytes)).await?;
                sent += bytes.len() as u64;
            } else {
                self.window.heed(answer(&mut self.answers).await?)?;
            }
        }
    }

    /// Sends a frame, and heeds what the receiver says meanwhile: it may be slow, or have a reason to stop.
    async fn send(&mut self, frame: &Frame) -> Result<(), NotSent> {
        let Self { writer, answers, window } = self;
        let mut sending = pin!(writer.send(frame));
        loop {
            tokio::select! {
                biased;
                answer = answer(answers) => window.heed(answer?)?,
                sent = &mut sending => return Ok(sent?),
            }
        }
    }
}

impl Window {
    fn heed(&mut self, answer: Answer) -> Result<(), NotSent> {
        match answer {
            Answer::From(offset) if self.from.is_none() => {
                self.from = Some(offset);
                self.taken = offset;
            }
            Answer::Taken(offset) if self.from.is_some() && offset >= self.taken => self.taken = offset,
            Answer::Working => {}
            Answer::Done(response) => self.done = Some(response),
            Answer::Failed(text) => return Err(NotSent::Failed(text)),
            Answer::From(_) | Answer::Taken(_) => {
                return Err(unexpected(&format!("the answer {answer:?}")).into());
            }
        }
        Ok(())
    }
}

/// Waits for the next answer. Can be given up.
async fn answer(answers: &mut FrameStream) -> Result<Answer, NotSent> {
    let frame = timeout(SILENT_MAX, next(answers)).await.map_err(|_| NotSent::Silent)??;
    match frame.kind {
        ANSWER => Ok(frame.value()?),
        kind => Err(unexpected(&format!("a frame of kind {kind}")).into()),
    }
}
