//! One connection: what is on its way in both directions, and what each end knows.
//!
//! Owns: the bytes. Never: knows whether a way is open.

use super::path::Host;
use bytes::{Buf as _, BytesMut};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::task::Waker;
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of one direction that were sent and not read; with so many the sender has to wait.
pub(super) const WINDOW_BYTES: usize = 64 << 10;
/// What of a conversation is kept to be said again.
const SAID_BYTES_MAX: usize = 16 << 10;

/// Which end: that of the host that connected, or that of the one that accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Caller,
    Called,
}

impl Side {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Caller => Self::Called,
            Self::Called => Self::Caller,
        }
    }
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The caller's wish is on its way.
    Asked,
    /// The called host has answered.
    Answered,
    /// The caller knows.
    Open,
}

/// What is on its way to an end.
pub(super) enum Carried {
    Bytes(BytesMut),
    /// Nothing more comes.
    End,
    /// The connection doesn't exist at the other end.
    Reset,
}

/// What arrives together.
pub(super) struct Parcel {
    pub(super) due: Instant,
    pub(super) carried: Carried,
}

/// One end.
pub(super) struct End {
    pub(super) host: Host,
    /// Which life of the host.
    pub(super) incarnation: u64,
    /// On its way to here.
    pub(super) flight: VecDeque<Parcel>,
    /// Something of it has an event that lets it arrive.
    pub(super) is_scheduled: bool,
    /// Has arrived and wasn't read.
    pub(super) arrived: BytesMut,
    /// Nothing more comes after what has arrived.
    pub(super) is_at_end: bool,
    /// Why nothing goes any more, as this end knows.
    pub(super) broken: Option<ErrorKind>,
    /// Nobody has this end any more.
    pub(super) is_dropped: bool,
    /// This end sends nothing more.
    pub(super) has_ended: bool,
    /// Bytes to here that weren't read.
    pub(super) unread_bytes: usize,
    /// After so much silence of a way that is cut, this end gives up.
    pub(super) silence_max: Duration,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    pub(super) watcher: Option<Waker>,
}

impl End {
    pub(super) fn new(host: Host, incarnation: u64, silence_max: Duration) -> Self {
        Self {
            host,
            incarnation,
            flight: VecDeque::new(),
            is_scheduled: false,
            arrived: BytesMut::new(),
            is_at_end: false,
            broken: None,
            is_dropped: false,
            has_ended: false,
            unread_bytes: 0,
            silence_max,
            reader: None,
            writer: None,
            watcher: None,
        }
    }

    /// Everybody who waits at this end.
    pub(super) fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        woken.extend([self.reader.take(), self.writer.take(), self.watcher.take()].into_iter().flatten());
    }

    /// It learns that nothing goes any more.
    pub(super) fn break_off(&mut self, why: ErrorKind, woken: &mut Vec<Waker>) {
        if self.broken.is_none() {
            self.broken = Some(why);
            self.arrived.clear();
            self.wake_all(woken);
        }
    }

    /// Nobody has it any more; what its destructors still do is lost.
    pub(super) fn die(&mut self) {
        self.is_dropped = true;
        self.broken = Some(ErrorKind::ConnectionReset);
        (self.reader, self.writer, self.watcher) = (None, None, None);
    }

    /// Nothing can happen here any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_dropped && self.flight.is_empty()
    }

    /// Puts something behind everything that is on its way; what would come at the same time comes together.
    pub(super) fn send(&mut self, due: Instant, soonest: Instant, carried: Carried) {
        if let (Some(Parcel { due, carried: Carried::Bytes(before) }), Carried::Bytes(bytes)) =
            (self.flight.back_mut(), &carried)
            && *due >= soonest
        {
            before.extend_from_slice(bytes);
            return;
        }
        let due = self.flight.back().map_or(due, |before| before.due.max(due));
        self.flight.push_back(Parcel { due, carried });
    }

    /// Takes what has arrived, as much as there is room for.
    pub(super) fn read(&mut self, room: &mut [u8]) -> usize {
        let count = room.len().min(self.arrived.len());
        let (Some(room), Some(bytes)) = (room.get_mut(..count), self.arrived.get(..count)) else { return 0 };
        room.copy_from_slice(bytes);
        self.arrived.advance(count);
        self.unread_bytes = self.unread_bytes.saturating_sub(count);
        count
    }
}

/// Two ends and what the caller said.
pub(super) struct Connection {
    pub(super) phase: Phase,
    pub(super) port: u16,
    pub(super) caller: End,
    pub(super) called: End,
    /// Comes on top of every delay.
    pub(super) slow_by: Duration,
    /// The wish to connect, or the answer, waits for a way that is cut.
    pub(super) is_held_up: bool,
    /// What the caller said, from the beginning, as far as it is kept.
    pub(super) said: BytesMut,
}

impl Connection {
    pub(super) const fn end(&self, side: Side) -> &End {
        match side {
            Side::Caller => &self.caller,
            Side::Called => &self.called,
        }
    }

    pub(super) const fn end_mut(&mut self, side: Side) -> &mut End {
        match side {
            Side::Caller => &mut self.caller,
            Side::Called => &mut self.called,
        }
    }

    /// What the caller says is remembered, until it is too much.
    pub(super) fn remember(&mut self, bytes: &[u8]) {
        let room = SAID_BYTES_MAX.saturating_sub(self.said.len());
        self.said.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }
}
