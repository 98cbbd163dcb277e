//! What arrives, and what comes of it.
//!
//! Owns: the moment of arrival. Never: draws a fault.

use super::connection::{Carried, Parcel, Phase, Side};
use super::state::{Due, Key, State};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::time::Instant;

/// Connections that a door keeps waiting; more aren't answered.
const BACKLOG_MAX: usize = 128;
/// When a wish to connect is said again that a full door didn't answer.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl State {
    /// Lets everything arrive that is due.
    pub(super) fn move_all(&mut self, now: Instant) {
        while let Some(due) = self.take_due(now) {
            match due {
                Due::Asked(key) => self.asked(key, now),
                Due::Answered(key) => self.answered(key),
                Due::Refused(key) => self.refused(key),
                Due::Arrives(key, side) => self.arrives(key, side, now),
                Due::Silence(key, side) => self.silence(key, side, now),
            }
        }
    }

    fn asked(&mut self, key: Key, now: Instant) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
        let (from, to, port) = (connection.caller.host, connection.called.host, connection.port);
        if connection.caller.is_dropped {
            // It was given up before anybody heard of it.
            self.connections.remove(&key);
            return;
        }
        if !self.is_open(from, to) {
            self.hold_up(key);
            return;
        }
        let (answer_due, _) = self.arrival(to, from);
        let Some(host) = self.hosts.get_mut(to) else { return };
        let incarnation = host.incarnation;
        match host.doors.get_mut(&port) {
            Some(door) if door.backlog.len() < BACKLOG_MAX => {
                door.backlog.push_back(key);
                self.woken.extend(door.waiting.take());
                if let Some(connection) = self.connections.get_mut(&key) {
                    connection.phase = Phase::Answered;
                    connection.called.incarnation = incarnation;
                }
                self.schedule(answer_due, Due::Answered(key));
            }
            Some(_) => self.schedule(now + ASK_AGAIN_AFTER, Due::Asked(key)),
            None => self.schedule(answer_due, Due::Refused(key)),
        }
    }

    fn answered(&mut self, key: Key) {
        let Some(connection) = self.connections.get(&key) else { return };
        if !self.is_open(connection.called.host, connection.caller.host) {
            self.hold_up(key);
            return;
        }
        if let Some(connection) = self.connections.get_mut(&key) {
            connection.phase = Phase::Open;
            self.woken.extend(connection.caller.writer.take());
        }
    }

    fn refused(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
        connection.called.die();
        let is_heard = !self.paths.is_cut(connection.called.host, connection.caller.host);
        if is_heard {
            connection.caller.break_off(ErrorKind::ConnectionRefused, &mut self.woken);
        }
        self.forget_if_over(key);
    }

    fn hold_up(&mut self, key: Key) {
        if let Some(connection) = self.connections.get_mut(&key) {
            connection.is_held_up = true;
        }
    }

    fn arrives(&mut self, key: Key, side: Side, now: Instant) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
        let (from, to) = (connection.end(side.other()).host, connection.end(side).host);
        connection.end_mut(side).is_scheduled = false;
        if !self.is_open(from, to) {
            // It is sent again, and arrives once the way is mended.
            return;
        }
        let mut is_unknown = false;
        while let Some(connection) = self.connections.get_mut(&key) {
            let end = connection.end_mut(side);
            match end.flight.front() {
                Some(parcel) if parcel.due <= now => {}
                Some(parcel) => {
                    let due = parcel.due;
                    end.is_scheduled = true;
                    self.schedule(due, Due::Arrives(key, side));
                    break;
                }
                None => break,
            }
            let Some(Parcel { carried, .. }) = end.flight.pop_front() else { break };
            self.trace.mark(&[key, side as u64, size(&carried)]);
            if end.is_dropped {
                // Whoever sent it has to learn that nobody is there.
                is_unknown |= !matches!(carried, Carried::Reset);
                continue;
            }
            match carried {
                Carried::Bytes(bytes) if end.arrived.is_empty() => end.arrived = bytes,
                Carried::Bytes(bytes) => end.arrived.extend_from_slice(&bytes),
                Carried::End => {
                    end.is_at_end = true;
                    self.woken.extend(end.watcher.take());
                }
                Carried::Reset => {
                    end.flight.clear();
                    end.break_off(ErrorKind::ConnectionReset, &mut self.woken);
                }
            }
            self.woken.extend(end.reader.take());
        }
        if is_unknown
            && self.connections.get(&key).is_some_and(|connection| !connection.end(side.other()).is_dropped)
        {
            self.send_from(key, side, Carried::Reset);
        }
        self.forget_if_over(key);
    }

    /// An end that hears nothing asks whether anybody is there, and gives up without an answer.
    fn silence(&mut self, key: Key, side: Side, now: Instant) {
        let Some(connection) = self.connections.get(&key) else { return };
        let end = connection.end(side);
        let (here, there, silence_max) = (end.host, connection.end(side.other()).host, end.silence_max);
        if end.is_dropped || end.broken.is_some() {
            return;
        }
        if connection.end(side.other()).is_dropped && connection.phase == Phase::Open {
            // Nobody is there. If the question gets through, it is answered by a reset.
            if self.is_open(here, there) && !self.paths.is_cut(there, here) && end.flight.is_empty() {
                if let Some(connection) = self.connections.get_mut(&key) {
                    connection.end_mut(side).break_off(ErrorKind::ConnectionReset, &mut self.woken);
                }
                return;
            }
        }
        let cuts = [self.paths.cut_since(here, there), self.paths.cut_since(there, here)];
        let since = match cuts.into_iter().flatten().min() {
            Some(since) => since,
            None if self.is_up(there) => return,
            None => now - silence_max,
        };
        if since + silence_max <= now {
            self.trace.mark(&[key, side as u64, u64::MAX]);
            if let Some(connection) = self.connections.get_mut(&key) {
                connection.end_mut(side).break_off(ErrorKind::TimedOut, &mut self.woken);
            }
        } else {
            self.schedule(since + silence_max, Due::Silence(key, side));
        }
    }
}

fn size(carried: &Carried) -> u64 {
    match carried {
        Carried::Bytes(bytes) => bytes.len() as u64,
        Carried::End => u64::MAX - 1,
        Carried::Reset => u64::MAX - 2,
    }
}
