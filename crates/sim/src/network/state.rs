//! Everything that a network knows.
//!
//! Owns: hosts, connections, what is due when; what faults do to them. Never: moves a byte (see `delivery`).

use super::Leaving;
use super::connection::{Carried, Connection, End, Parcel, Phase, Side, WINDOW_BYTES};
use super::path::{Host, Paths, Quality, Way, sent_again_after};
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
                let end = connection.end_mut(side);
                if end.host != host || end.is_dropped {
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

    pub(super) fn cut(&mut self, from: &str, to: &str) {
        let (from, to) = (self.host(from), self.host(to));
        if !self.paths.cut(from, to, Instant::now()) {
            return;
        }
        let between = |connection: &Connection| {
            let hosts = (connection.caller.host, connection.called.host);
            hosts == (from, to) || hosts == (to, from)
        };
        let keys: Vec<Key> = self
            .connections
            .iter()
            .filter(|(_, connection)| between(connection))
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            self.watch_silence(key, Side::Caller);
            self.watch_silence(key, Side::Called);
        }
    }

    pub(super) fn mend(&mut self, from: &str, to: &str) {
        let way = (self.host(from), self.host(to));
        self.mend_way(way);
    }

    pub(super) fn mend_all(&mut self) {
        self.paths.usual_again();
        let cuts: Vec<Way> = self.paths.cuts().copied().collect();
        cuts.into_iter().for_each(|way| self.mend_way(way));
    }

    fn mend_way(&mut self, (from, to): Way) {
        if let Some(cut_for) = self.paths.mend(from, to, Instant::now()) {
            let asleep = self.waiting_for(|sender, receiver| (sender, receiver) == (from, to));
            self.send_again(asleep, cut_for);
        }
    }

    pub(super) fn set_quality(&mut self, from: &str, to: &str, quality: Quality) {
        let (from, to) = (self.host(from), self.host(to));
        self.paths.set_quality(from, to, quality);
    }

    /// What waits for a way, and would go on with it.
    fn waiting_for(&self, is_way: impl Fn(Host, Host) -> bool) -> Vec<Due> {
        let mut waiting = Vec::new();
        for (key, connection) in &self.connections {
            let (caller, called) = (connection.caller.host, connection.called.host);
            if connection.is_held_up {
                match connection.phase {
                    Phase::Asked if is_way(caller, called) => waiting.push(Due::Asked(*key)),
                    Phase::Answered if is_way(called, caller) => waiting.push(Due::Answered(*key)),
                    _ => {}
                }
            }
            for (side, from, to) in [(Side::Caller, called, caller), (Side::Called, caller, called)] {
                let end = connection.end(side);
                if !end.flight.is_empty() && !end.is_scheduled && is_way(from, to) {
                    waiting.push(Due::Arrives(*key, side));
                }
            }
        }
        waiting
    }

    fn send_again(&mut self, asleep: Vec<Due>, cut_for: Duration) {
        for due in asleep {
            match due {
                Due::Asked(key) | Due::Answered(key) | Due::Refused(key) => {
                    if let Some(connection) = self.connections.get_mut(&key) {
                        connection.is_held_up = false;
                    }
                }
                Due::Arrives(key, side) => {
                    if let Some(connection) = self.connections.get_mut(&key) {
                        connection.end_mut(side).is_scheduled = true;
                    }
                }
                Due::Silence(..) => {}
            }
            let after = sent_again_after(cut_for, &mut self.random);
            self.schedule(Instant::now() + after, due);
        }
    }

    pub(super) fn watch_silence(&mut self, key: Key, side: Side) {
        let Some(connection) = self.connections.get(&key) else { return };
        let end = connection.end(side);
        if !end.is_dropped && end.broken.is_none() {
            let at = Instant::now() + end.silence_max;
            self.schedule(at, Due::Silence(key, side));
        }
    }

    fn open_of(&self, host: &str) -> Vec<Key> {
        let is_open = |connection: &Connection| {
            let (caller, called) = (self.name(connection.caller.host), self.name(connection.called.host));
            let is_of_host = caller == host || called == host;
            let is_whole = connection.caller.broken.is_none() && connection.called.broken.is_none();
            is_of_host && is_whole && connection.phase == Phase::Open
        };
        self.connections.iter().filter(|(_, connection)| is_open(connection)).map(|(key, _)| *key).collect()
    }

    fn words(&self, key: Key) -> Option<String> {
        let connection = self.connections.get(&key)?;
        let (caller, called) = (self.name(connection.caller.host), self.name(connection.called.host));
        Some(format!("{caller} to {called}:{}", connection.port))
    }

    pub(super) fn break_one(&mut self, host: &str, random: &mut Seeded) -> Option<String> {
        let key = *random.pick(&self.open_of(host))?;
        let words = self.words(key);
        for side in [Side::Caller, Side::Called] {
            let Some(end) = self.connections.get_mut(&key).map(|connection| connection.end_mut(side)) else {
                continue;
            };
            // Some of what is on its way still comes, up to anywhere.
            let kept = random.index(end.flight.len() + 1);
            end.flight.truncate(kept);
            if let Some(Parcel { carried: Carried::Bytes(bytes), .. }) = end.flight.back_mut() {
                bytes.truncate(random.index(bytes.len()).max(1));
            }
            self.send_from(key, side.other(), Carried::Reset);
        }
        words
    }

    pub(super) fn slow_one(&mut self, host: &str, by: Duration, random: &mut Seeded) -> Option<String> {
        let key = *random.pick(&self.open_of(host))?;
        let connection = self.connections.get_mut(&key)?;
        connection.slow_by = by;
        for side in [Side::Caller, Side::Called] {
            connection.end_mut(side).flight.iter_mut().for_each(|parcel| parcel.due += by);
        }
        self.words(key)
    }
}

/// How long an end hears nothing before it gives up: as the product sets it for its sockets.
const fn silence_max(port: u16) -> Duration {
    match port {
        super::PEER => Duration::from_secs(5),
        _ => Duration::from_secs(20),
    }
}
