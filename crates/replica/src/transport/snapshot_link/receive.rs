//! The member's end of a snapshot.
//!
//! Owns: taking one snapshot in over one connection, from its offer to the answer. Never: leaves the sender without
//! a word while it works, or stops the node because a snapshot can't be taken. Next: `half.rs` has the file that is
//! coming in.

use super::super::frame::{Connection, Frame, FrameWriter, Frames};
use super::super::raft_frames::{FrameStream, check_speaker, check_term, frames, send_answer};
use super::super::raft_server::{Ended, Host};
use super::half::Half;
use super::{ANSWER, Answer, BYTES_MAX, OFFER, Offer, PIECE_WITHIN, WORKING_EVERY, next, offset_and_bytes};
use crate::raft_types::{Snapshot, TypeConfig};
use crate::snapshot_store::SnapshotFile;
use crate::storage::work;
use kunci_process::{sleep, timeout};
use openraft::async_runtime::WatchReceiver;
use openraft::raft::SnapshotResponse;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long the sender may take to close the connection once it has the last answer.
const LAST_ANSWER_ARRIVES_WITHIN: Duration = Duration::from_secs(1);

/// Takes one snapshot in.
pub(in crate::transport) async fn receive(
    host: &Host,
    from: u64,
    connection: Connection,
) -> Result<(), Ended> {
    let Frames { reader, writer } = connection.into_frames();
    let mut pieces = frames(reader, BYTES_MAX);
    let offer = timeout(PIECE_WITHIN, next(&mut pieces)).await.map_err(|_| Ended::Idle)??;
    if offer.kind != OFFER {
        return Err(Ended::Refused(format!("a frame of kind {} before the offer of a snapshot", offer.kind)));
    }
    let offer: Offer = offer.value()?;
    let sound = check_speaker(from, &offer.vote);
    sound.and_then(|()| check_term(from, &offer.vote, offer.meta.last_log_id)).map_err(Ended::Refused)?;
    let (number, newest) = host.half_received.take_over();
    let sender = ToSender { writer, is_broken: false };
    let mut receiving = Receiving { host, from, offer, pieces, sender, number, newest };
    let received = receiving.run().await;
    if received.is_err() {
        host.half_received.forget_later(number);
    }
    let answer = received?;
    receiving.sender.say(&answer).await?;
    // What is still on its way here is read: closing before that can throw away the answer too.
    let Receiving { mut pieces, .. } = receiving;
    let closed = async { while next(&mut pieces).await.is_ok() {} };
    drop(timeout(LAST_ANSWER_ARRIVES_WITHIN, closed).await);
    Ok(())
}

struct Receiving<'h> {
    host: &'h Host,
    from: u64,
    offer: Offer,
    pieces: FrameStream,
    sender: ToSender,
    /// The number of this connection, and that of the newest.
    number: u64,
    newest: watch::Receiver<u64>,
}

impl Receiving<'_> {
    /// Gives the last answer.
    async fn run(&mut self) -> Result<Answer, Ended> {
        let half_received = self.host.half_received.clone();
        let mut half = self.sender.hear_working(half_received.lock()).await;
        if let Some(response) = self.needs_nothing() {
            return Ok(Answer::Done(response));
        }
        // A transfer whose last answer was lost, while what it brought is still being installed.
        if let Some(same) = self.host.snapshots.newest().filter(|newest| *newest.meta() == self.offer.meta) {
            return self.install(same).await;
        }
        match self.take_file(&mut half).await? {
            Ok(file) => {
                let came_in_as = file.path().to_owned();
                let installed = self.install(file).await;
                // An installed file has its own name by now. One that turned out not to be needed still has this
                // one, and would keep it until the next start.
                let files = Arc::clone(self.host.snapshots.files());
                work(&Arc::clone(&files), async move { files.remove(&came_in_as) }).await.ok();
                installed
            }
            Err(error) => {
                tracing::warn!(from = self.from, %error, "can't take a snapshot from the leader");
                Ok(Answer::Failed(error.to_string()))
            }
        }
    }

    /// The answer to an offer from a leader whose time is over, or of what is here already.
    fn needs_nothing(&self) -> Option<SnapshotResponse<TypeConfig>> {
        let metrics = self.host.raft.metrics();
        let metrics = metrics.borrow_watched();
        let is_over = metrics.vote > self.offer.vote;
        let is_here = metrics.vote == self.offer.vote && metrics.last_applied >= self.offer.meta.last_log_id;
        (is_over || is_here).then(|| SnapshotResponse::new(metrics.vote))
    }

    /// Takes the pieces of the file. The inner error is one of the disk or of the file.
    async fn take_file(&mut self, half: &mut Option<Half>) -> Result<io::Result<SnapshotFile>, Ended> {
        let (host, from, offer) = (self.host, self.from, self.offer.clone());
        let begun = half.take().filter(|half| half.is_of(from, &offer));
        let begun = match begun {
            Some(begun) => Ok(begun),
            None => self.sender.hear_working(host.half_received.begin(&host.snapshots, from, offer)).await,
        };
        match begun {
            Ok(begun) => self.sender.say(&Answer::From(half.insert(begun).received())).await?,
            Err(error) => return Ok(Err(error)),
        }
        // While this waits for a piece, what came so far is in the slot for the next connection.
        while half.as_ref().is_some_and(|half| !half.is_whole()) {
            let (offset, bytes) = offset_and_bytes(&self.next_piece().await?)?;
            let Some(begun) = half.take() else { break };
            match self.sender.hear_working(host.half_received.take(begun, offset, bytes)).await {
                Ok(begun) => self.sender.say(&Answer::Taken(half.insert(begun).received())).await?,
                Err(error) => return Ok(Err(error)),
            }
        }
        let Some(whole) = half.take() else { return Ok(Err(io::ErrorKind::UnexpectedEof.into())) };
        let files = Arc::clone(host.snapshots.files());
        Ok(self.sender.hear_working(work(&files, whole.finish())).await)
    }

    async fn next_piece(&mut self) -> Result<Frame, Ended> {
        let Self { pieces, sender, number, newest, .. } = self;
        let piece = sender.hear_working(timeout(PIECE_WITHIN, next(pieces)));
        tokio::select! {
            biased;
            _ = newest.wait_for(|newest| newest != number) => {
                Err(io::Error::other("a newer connection goes on with this snapshot").into())
            }
            piece = piece => Ok(piece.map_err(|_| Ended::Idle)??),
        }
    }

    async fn install(&mut self, file: SnapshotFile) -> Result<Answer, Ended> {
        let snapshot = Snapshot { meta: self.offer.meta.clone(), snapshot: file };
        let installed = self.host.raft.install_full_snapshot(self.offer.vote, snapshot);
        let installed = self.sender.hear_working(installed).await;
        Ok(Answer::Done(installed.map_err(|fatal| Ended::Stopped(fatal.to_string()))?))
    }
}

/// The way to the sender.
struct ToSender {
    writer: FrameWriter,
    /// A frame went out half: nothing may follow it.
    is_broken: bool,
}

impl ToSender {
    async fn say(&mut self, answer: &Answer) -> io::Result<()> {
        if self.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let sent = send_answer(&mut self.writer, &Frame::holding(ANSWER, answer)?).await;
        self.is_broken = sent.is_err();
        sent
    }

    /// Waits for `work`, and tells the sender meanwhile that there is some. The work is done to its end also when
    /// the sender has gone: it would only have to be done again (case C47).
    async fn hear_working<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = sleep(WORKING_EVERY), if !self.is_broken => {}
            }
            let said = timeout(WORKING_EVERY, self.say(&Answer::Working)).await;
            self.is_broken = !matches!(said, Ok(Ok(())));
        }
    }
}
