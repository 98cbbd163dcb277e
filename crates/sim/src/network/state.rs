//! Everything that a network knows.
//!
//! Owns: hosts, connections, what is due when. Never: moves a byte (see `delivery`), or strikes (see `trouble`).

use super::Leaving;
use super::connection::{Carried, Connection, End, Phase, Side, WINDOW_BYTES};
use super::path::{Host, Paths, Quality};
use super::replay::Recordings;
use crate::randomness::Seeded;
use crate::trace::Trace;
use bytes::BytesMut;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::{self, ErrorKind};
use std::task::Waker;
use std::time::Duration;
use tokio::time::Instant;

/// A connection, by the order in which they were asked for.
pub(super) type Key = u64;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The wish to connect arrives.
    Asked(Key),
    /// The answer to it arrives.
    Answered(Key),
    /// The answer that nobody listens arrives.
    Refused(Key),
    /// Something arrives at an end.
    Arrives(Key, Side),
    /// An end looks whether it heard anything lately.
    Silence(Key, Side),
}

/// A host, plugged in or not.
#[derive(Default)]
pub(super) struct HostState {
    pub(super) name: String,
    /// Counts its lives.
    pub(super) incarnation: u64,
    /// Whether anything there answers, be it that nobody listens.
    pub(super) is_up: bool,
    pub(super) doors: BTreeMap<u16, DoorState>,
}

/// Who comes to a port.
#[derive(Default)]
pub(super) struct DoorState {
    pub(super) backlog: VecDeque<Key>,
    pub(super) waiting: Option<Waker>,
}

/// Everything that a network knows.
pub(super) struct State {
    pub(super) random: Seeded,
    pub(super) paths: Paths,
    pub(super) hosts: Vec<HostState>,
    pub(super) connections: BTreeMap<Key, Connection>,
    pub(super) recordings: Recordings,
    pub(super) trace: Trace,
    pub(super) woken: Vec<Waker>,
    due: BinaryHeap<Reverse<(Instant, u64, Due)>>,
    due_count: u64,
    next_key: Key,
    mover: Option<Waker>,
}

impl State {
    pub(super) fn new(random: Seeded, quality: Quality, trace: Trace) -> Self {
        Self {
            random,
            paths: Paths::new(quality),
            hosts: Vec::new(),
            connections: BTreeMap::new(),
            recordings: Recordings::default(),
            trace,
            woken: Vec::new(),
            due: BinaryHeap::new(),
            due_count: 0,
            next_key: 0,
            mover: None,
        }
    }

    pub(super) fn set_mover(&mut self, waker: &Waker) {
        match &mut self.mover {
            Some(mover) => mover.clone_from(waker),
            None => self.mover = Some(waker.clone()),
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Takes the next thing that is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Due> {
        if self.next_due()? > now {
            return None;
        }
        self.due.pop().map(|Reverse((_, _, due))| due)
    }

    pub(super) fn schedule(&mut self, at: Instant, due: Due) {
        if self.next_due().is_none_or(|next| at < next) {
            // It sleeps for too long.
            self.woken.extend(self.mover.clone());
        }
        self.due_count += 1;
        self.due.push(Reverse((at, self.due_count, due)));
    }

    pub(super) fn host(&mut self, name: &str) -> Host {
        let known = self.hosts.iter().position(|host| host.name == name);
        known.unwrap_or_else(|| {
            self.hosts.push(HostState { name: name.to_owned(), ..HostState::default() });
            self.hosts.len() - 1
        })
    }

    pub(super) fn name(&self, host: Host) -> &str {
        self.hosts.get(host).map_or("?", |host| &host.name)
    }

    pub(super) fn is_up(&self, host: Host) -> bool {
        self.hosts.get(host).is_some_and(|host| host.is_up)
    }

    /// Whether anything gets from one host to another now.
    pub(super) fn is_open(&self, from: Host, to: Host) -> bool {
        !self.paths.is_cut(from, to) && self.is_up(to)
    }

    /// When something arrives that is sent now, and the soonest that it could.
    pub(super) fn arrival(&mut self, from: Host, to: Host) -> (Instant, Instant) {
        let (now, quality) = (Instant::now(), self.paths.quality(from, to));
        (quality.arrival(now, &mut self.random), now + quality.delay)
    }

    pub(super) fn plug(&mut self, name: &str) -> u64 {
        let host = self.host(name);
        let Some(state) = self.hosts.get_mut(host) else { return 0 };
        state.incarnation += 1;
        state.is_up = true;
        state.doors.clear();
        let incarnation = state.incarnation;
        // What was sent to its earlier lives comes now, and is told that nobody knows of it.
        let asleep = self.waiting_for(|_, to| to == host);
        self.send_again(asleep, Duration::from_secs(1));
        incarnation
    }

    pub(super) fn unplug(&mut self, name: &str, how: Leaving) {
        let host = self.host(name);
        let Some(state) = self.hosts.get_mut(host) else { return };
        state.doors.clear();
        state.is_up = how == Leaving::Process;
        let keys: Vec<Key> = self.connections.keys().copied().collect();
        for key in keys {
            for side in [Side::Caller, Side::Called] {
                let Some(connection) = self.connections.get_mut(&key) else { continue };
                // A wish to connect that hasn't come here yet may find the next process.
                let is_known = side == Side::Caller || connection.phase != Phase::Asked;
                let end = connection.end_mut(side);
                if end.host != host || end.is_dropped || !is_known {
                    continue;
                }
                end.die();
                match how {
                    Leaving::Process => self.send_from(key, side, Carried::Reset),
                    Leaving::Machine => self.watch_silence(key, side.other()),
                }
            }
            self.forget_if_over(key);
        }
    }

    /// Sends something from an end to the other one.
    pub(super) fn send_from(&mut self, key: Key, side: Side, carried: Carried) {
        let Some(connection) = self.connections.get(&key) else { return };
        let (from, to) = (connection.end(side).host, connection.end(side.other()).host);
        let slow_by = connection.slow_by;
        if matches!(carried, Carried::Reset) && !self.is_open(from, to) {
            // A reset is said once. Who doesn't hear it learns by asking.
            self.watch_silence(key, side.other());
            return;
        }
        let (due, soonest) = self.arrival(from, to);
        let Some(connection) = self.connections.get_mut(&key) else { return };
        let end = connection.end_mut(side.other());
        if let Carried::Bytes(bytes) = &carried {
            end.unread_bytes += bytes.len();
        }
        end.send(due + slow_by, soonest + slow_by, carried);
        let first = end.flight.front().map(|parcel| parcel.due);
        if let (Some(first), false) = (first, end.is_scheduled) {
            end.is_scheduled = true;
            self.schedule(first, Due::Arrives(key, side.other()));
        }
    }

    /// Begins a connection.
    pub(super) fn connect(&mut self, from: Host, incarnation: u64, to: &str, port: u16) -> Key {
        let to = self.host(to);
        let silence_max = silence_max(port);
        self.next_key += 1;
        let key = self.next_key;
        let connection = Connection {
            phase: Phase::Asked,
            port,
            caller: End::new(from, incarnation, silence_max),
            called: End::new(to, 0, silence_max),
            slow_by: Duration::ZERO,
            is_held_up: false,
            said: BytesMut::new(),
        };
        self.connections.insert(key, connection);
        let (due, _) = self.arrival(from, to);
        self.schedule(due, Due::Asked(key));
        key
    }

    pub(super) fn write(&mut self, key: Key, side: Side, bytes: &[u8]) -> io::Result<usize> {
        let Some(connection) = self.connections.get_mut(&key) else {
            return Err(ErrorKind::ConnectionReset.into());
        };
        let end = connection.end(side);
        if let Some(why) = end.broken {
            return Err(why.into());
        }
        if end.has_ended {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let room = WINDOW_BYTES.saturating_sub(connection.end(side.other()).unread_bytes);
        let bytes = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        if bytes.is_empty() {
            return if room == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(0) };
        }
        if side == Side::Caller && connection.port == super::NATIVE {
            connection.remember(bytes);
        }
        self.send_from(key, side, Carried::Bytes(BytesMut::from(bytes)));
        Ok(bytes.len())
    }

    pub(super) fn read(&mut self, key: Key, side: Side, room: &mut [u8]) -> io::Result<usize> {
        let Some(connection) = self.connections.get_mut(&key) else {
            return Err(ErrorKind::ConnectionReset.into());
        };
        let end = connection.end_mut(side);
        if let Some(why) = end.broken {
            return Err(why.into());
        }
        let was_full = end.unread_bytes >= WINDOW_BYTES;
        let count = end.read(room);
        if count == 0 && !room.is_empty() && !end.is_at_end {
            return Err(ErrorKind::WouldBlock.into());
        }
        if was_full && count > 0 {
            self.woken.extend(connection.end_mut(side.other()).writer.take());
        }
        Ok(count)
    }

    /// Whether a read wouldn't have to wait.
    pub(super) fn is_readable(&self, key: Key, side: Side) -> io::Result<()> {
        let Some(connection) = self.connections.get(&key) else { return Ok(()) };
        let end = connection.end(side);
        let is_readable = end.broken.is_some() || end.is_at_end || !end.arrived.is_empty();
        if is_readable { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) }
    }

    /// Whether a write wouldn't have to wait.
    pub(super) fn is_writable(&self, key: Key, side: Side) -> io::Result<()> {
        let Some(connection) = self.connections.get(&key) else { return Ok(()) };
        let is_full = connection.end(side.other()).unread_bytes >= WINDOW_BYTES;
        if is_full && connection.end(side).broken.is_none() {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(())
    }

    /// An end sends nothing more.
    pub(super) fn end_writing(&mut self, key: Key, side: Side) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&key) else {
            return Err(ErrorKind::NotConnected.into());
        };
        let end = connection.end_mut(side);
        if end.broken.is_some() {
            return Err(ErrorKind::NotConnected.into());
        }
        if !std::mem::replace(&mut end.has_ended, true) {
            self.send_from(key, side, Carried::End);
        }
        Ok(())
    }

    /// Nobody has an end any more.
    pub(super) fn drop_end(&mut self, key: Key, side: Side) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
        let end = connection.end_mut(side);
        if end.is_dropped {
            return;
        }
        (end.is_dropped, end.reader, end.writer, end.watcher) = (true, None, None, None);
        let (is_broken, has_unread) = (end.broken.is_some(), !end.arrived.is_empty());
        let has_ended = std::mem::replace(&mut end.has_ended, true);
        if !is_broken && connection.phase != Phase::Asked {
            if has_unread {
                self.send_from(key, side, Carried::Reset);
            } else if !has_ended {
                self.send_from(key, side, Carried::End);
            }
        }
        self.forget_if_over(key);
    }

    pub(super) fn forget_if_over(&mut self, key: Key) {
        let is_over = |connection: &Connection| connection.caller.is_over() && connection.called.is_over();
        if self.connections.get(&key).is_some_and(is_over)
            && let Some(connection) = self.connections.remove(&key)
        {
            self.recordings.keep(connection.said);
        }
    }
}

/// How long an end hears nothing before it gives up: as the product sets it for its sockets.
const fn silence_max(port: u16) -> Duration {
    match port {
        super::PEER => Duration::from_secs(5),
        _ => Duration::from_secs(20),
    }
}
