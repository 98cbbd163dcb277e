//! Answers on their way into the socket.
//!
//! Owns: how much of them is kept for a peer that reads slowly, and the moment from which a grant counts as handed out.
//! Never: waits.

use crate::service::OpenCall;
use kunci_api::native::Answer;
use std::collections::VecDeque;
use std::io;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// From this many bytes that went out on, they are dropped from what is kept, though more is to come.
const SENT_BYTES_MAX: usize = 64 << 10;

/// What a connection's peer is told and hasn't taken yet.
#[derive(Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    sent: usize,
    /// Each grant with the end of its line, counted in all bytes of the connection's life.
    grants: VecDeque<(u64, OpenCall)>,
    /// Bytes that went out and were dropped.
    before: u64,
    /// Since when the peer takes nothing.
    blocked: Option<Instant>,
}

impl Output {
    /// Appends an answer. A grant comes with its call, which is delivered once the whole line is in the socket; if the
    /// connection ends before, the call is dropped and so the grant abandoned.
    pub(super) fn push(&mut self, answer: &Answer, grant: Option<OpenCall>) {
        answer.write(&mut self.bytes);
        if let Some(call) = grant {
            self.grants.push_back((self.before + self.bytes.len() as u64, call));
        }
    }

    /// How many bytes wait.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Since when the peer takes nothing though something waits.
    pub(super) fn blocked_since(&self) -> Option<Instant> {
        self.blocked
    }

    /// Writes as much as the socket takes.
    pub(super) fn flush(&mut self, stream: &TcpStream) -> io::Result<()> {
        while self.len() > 0 {
            match stream.try_write(self.bytes.get(self.sent..).unwrap_or_default()) {
                Ok(count) => self.went_out(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked.get_or_insert_with(Instant::now);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if self.len() == 0 || self.sent > SENT_BYTES_MAX {
            self.before += self.sent as u64;
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }

    /// Keeps no memory for a connection on which nothing is under way.
    pub(super) fn give_back(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > 0 {
            (self.bytes, self.grants) = (Vec::new(), VecDeque::new());
        }
    }

    fn went_out(&mut self, count: usize) {
        self.blocked = None;
        self.sent += count;
        let sent = self.before + self.sent as u64;
        while let Some((end, call)) = self.grants.pop_front() {
            if end > sent {
                self.grants.push_front((end, call));
                break;
            }
            call.delivered();
        }
    }
}
