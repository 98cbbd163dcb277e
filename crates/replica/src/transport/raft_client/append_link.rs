//! One kept connection for entries or heartbeats.
//!
//! Owns: the connection, which answers are still to come on it, and when it counts as dead. Never: what the
//! library is told; that is `append_stream.rs`.
//!
//! The library opens a stream for each heartbeat and gives it up after one heartbeat interval. An answer may take
//! longer: the other end answers in order, and only when its disk has what came before. So a stream that was given
//! up leaves its answers to come, the next one passes over them, and the connection lives on. Requests are numbered:
//! the answer to one must never count for a later one, since to the library it proves that this node led when the
//! later one was sent.

use super::super::dial::{DialError, Dialer};
use super::super::frame::{Connection, Frame, FrameWriter, Frames};
use super::super::handshake::Purpose;
use super::super::raft_frames::{
    ANSWER_BYTES_MAX, APPEND, FrameStream, IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX, REFUSED, frames,
};
use super::address_of;
use crate::raft_types::TypeConfig;
use futures::StreamExt;
use futures::future::BoxFuture;
use kunci_process::{timeout, timeout_at};
use openraft::raft::{AppendEntriesRequest, StreamAppendResult};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::time::Instant;

/// A member that owes an answer and is silent for this long counts as gone. Longer than a slow sync of its disk.
const SILENT_MAX: Duration = Duration::from_secs(1);
/// Many bytes on the way get more time than that: as long as they take on a slow network.
const SLOW_BYTES_PER_MILLI: usize = 4 << 10;

type Request = AppendEntriesRequest<TypeConfig>;

/// One kept connection to a member, made when it is needed.
pub(super) struct AppendLink {
    dialer: Dialer,
    to: u64,
    address: String,
    state: State,
}

enum State {
    Down,
    /// Outlives the stream that began it: a heartbeat has less time than a handshake over a long way may take.
    Connecting(BoxFuture<'static, Result<Connection, DialError>>),
    Up(Up),
}

struct Up {
    answers: FrameStream,
    writer: FrameWriter,
    /// The requests whose answers are still to come, oldest first.
    owed: VecDeque<Owed>,
    owed_bytes: usize,
    next_number: u64,
    /// When the last answer came, or else the oldest of these requests went out.
    progress: Instant,
    /// A frame is half out: set while one is being written, which can be given up.
    is_writing: bool,
}

struct Owed {
    number: u64,
    bytes: usize,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Connect(#[from] DialError),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the member closed the connection before it answered")]
    Closed,
    #[error("the member refuses entries: {0}")]
    Refused(String),
    /// For this long.
    #[error("the member has owed an answer for {0:?}")]
    Silent(Duration),
}

impl AppendLink {
    pub(super) fn new(dialer: Dialer, to: u64, address: String) -> Self {
        Self { dialer, to, address, state: State::Down }
    }

    pub(super) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    pub(super) fn to(&self) -> u64 {
        self.to
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    /// Answers that are still to come.
    pub(super) fn owed(&self) -> usize {
        match &self.state {
            State::Up(up) => up.owed.len(),
            State::Down | State::Connecting(_) => 0,
        }
    }

    /// Whether another request may go out now.
    pub(super) fn has_room(&self) -> bool {
        match &self.state {
            State::Up(up) => up.owed.len() < IN_FLIGHT_MAX && up.owed_bytes < IN_FLIGHT_BYTES_MAX,
            State::Down | State::Connecting(_) => true,
        }
    }

    pub(super) fn drop_connection(&mut self) {
        self.state = State::Down;
    }

    /// Drops a connection that a new stream can't use: one with a frame half out, or that has been silent for too
    /// long.
    pub(super) fn tidy(&mut self) {
        if let State::Up(up) = &self.state
            && (up.is_writing || up.deadline().is_some_and(|deadline| deadline <= kunci_process::now()))
        {
            self.drop_connection();
        }
    }

    /// Sends a request, connecting before if need be.
    ///
    /// # Errors
    /// The connection is dropped then.
    pub(super) async fn send(&mut self, request: &Request, patience: Duration) -> Result<(), Broken> {
        let up = self.connected().await?;
        let sent = up.send(request, patience).await;
        if sent.is_err() {
            self.drop_connection();
        }
        sent
    }

    /// The connection, made if need be. When this is given up the next call goes on where it was.
    async fn connected(&mut self) -> Result<&mut Up, Broken> {
        // What an earlier stream began may have gone bad since, so it doesn't count as a try.
        let mut may_go_on = matches!(self.state, State::Connecting(_));
        if matches!(self.state, State::Down) {
            self.begin();
        }
        while let State::Connecting(connecting) = &mut self.state {
            let connected = connecting.await;
            self.state = State::Down;
            match connected {
                Ok(connection) => self.state = State::Up(Up::over(connection)),
                Err(_) if may_go_on => self.begin(),
                Err(error) => return Err(error.into()),
            }
            may_go_on = false;
        }
        match &mut self.state {
            State::Up(up) => Ok(up),
            State::Down | State::Connecting(_) => Err(Broken::Closed),
        }
    }

    fn begin(&mut self) {
        let (dialer, to) = (self.dialer.clone(), self.to);
        let address = address_of(&self.dialer, to, &self.address).into_owned();
        let connecting = async move { dialer.connect(to, &address, Purpose::Append).await };
        self.state = State::Connecting(Box::pin(connecting));
    }

    /// Waits for the next answer. While none is to come, it waits for the connection to end. Can be given up.
    ///
    /// # Errors
    /// The connection is dropped then.
    pub(super) async fn answer(&mut self) -> Result<StreamAppendResult<TypeConfig>, Broken> {
        let State::Up(up) = &mut self.state else { return Err(Broken::Closed) };
        let answer = up.answer().await;
        // After a conflict or a higher vote the other end takes nothing more on this connection.
        if !matches!(answer, Ok(Ok(_))) {
            self.drop_connection();
        }
        answer
    }
}

impl Up {
    fn over(connection: Connection) -> Self {
        let Frames { reader, writer } = connection.into_frames();
        Self {
            answers: frames(reader, ANSWER_BYTES_MAX),
            writer,
            owed: VecDeque::new(),
            owed_bytes: 0,
            next_number: 0,
            progress: kunci_process::now(),
            is_writing: false,
        }
    }

    /// Answers aren't read meanwhile. The other end has room for as many as may be owed, so it doesn't wait for that.
    async fn send(&mut self, request: &Request, patience: Duration) -> Result<(), Broken> {
        let number = self.next_number;
        let frame = Frame::holding(APPEND, &(number, request))?;
        let bytes = frame.body.len();
        let within = allowed(self.owed_bytes + bytes, patience);
        self.is_writing = true;
        timeout(within, self.writer.send(&frame)).await.map_err(|_| Broken::Silent(within))??;
        self.is_writing = false;
        if self.owed.is_empty() {
            self.progress = kunci_process::now();
        }
        self.next_number += 1;
        self.owed.push_back(Owed { number, bytes });
        self.owed_bytes += bytes;
        Ok(())
    }

    async fn answer(&mut self) -> Result<StreamAppendResult<TypeConfig>, Broken> {
        let frame = match self.deadline() {
            Some(deadline) => {
                let silent = || Broken::Silent(deadline.saturating_duration_since(self.progress));
                timeout_at(deadline, self.answers.next()).await.map_err(|_| silent())?
            }
            None => self.answers.next().await,
        };
        let frame = frame.ok_or(Broken::Closed)??;
        if frame.kind == REFUSED {
            return Err(Broken::Refused(frame.value()?));
        }
        let (number, answer): (u64, _) = match frame.kind {
            APPEND => frame.value()?,
            kind => return Err(malformed(format!("an answer of kind {kind}, expected {APPEND}"))),
        };
        let expected = self.owed.pop_front().filter(|expected| expected.number == number);
        let expected =
            expected.ok_or_else(|| malformed(format!("the answer to request {number} is out of turn")))?;
        self.owed_bytes -= expected.bytes;
        self.progress = kunci_process::now();
        Ok(answer)
    }

    /// Until when the next answer must be here, if one is to come.
    fn deadline(&self) -> Option<Instant> {
        (!self.owed.is_empty()).then(|| self.progress + allowed(self.owed_bytes, Duration::ZERO))
    }
}

fn malformed(what: String) -> Broken {
    io::Error::new(io::ErrorKind::InvalidData, what).into()
}

/// How long the other end may be silent with so many bytes on the way. The library's own limit is one heartbeat
/// interval, which is less than a slow sync takes; when it is longer it counts.
fn allowed(bytes: usize, patience: Duration) -> Duration {
    SILENT_MAX.max(patience) + Duration::from_millis((bytes / SLOW_BYTES_PER_MILLI) as u64)
}
