//! What faults do to a network, and what comes of it later.
//!
//! Owns: cuts and their mending, connections that break or get late, ends that hear nothing. Never: decides when.

use super::connection::{Carried, Connection, Parcel, Phase, Side};
use super::path::{Host, Quality, Way, sent_again_after};
use super::state::{Due, Key, State};
use crate::randomness::Seeded;
use std::time::Duration;
use tokio::time::Instant;

/// How long what has just arrived may be read before the connection breaks.
const READ_WITHIN: Duration = Duration::from_millis(2);

impl State {
    pub(super) fn cut(&mut self, from: &str, to: &str) {
        let (from, to) = (self.host(from), self.host(to));
        if !self.paths.cut(from, to, Instant::now()) {
            return;
        }
        let is_between = |connection: &Connection| {
            let hosts = (connection.caller.host, connection.called.host);
            hosts == (from, to) || hosts == (to, from)
        };
        let keys: Vec<Key> = self
            .connections
            .iter()
            .filter(|(_, connection)| is_between(connection))
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
        self.connections.values_mut().for_each(|connection| connection.slow_by = Duration::ZERO);
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
    pub(super) fn waiting_for(&self, is_way: impl Fn(Host, Host) -> bool) -> Vec<Due> {
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

    pub(super) fn send_again(&mut self, asleep: Vec<Due>, cut_for: Duration) {
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
            // What comes before the reset may be read before it.
            let last = end.flight.back().map(|parcel| parcel.due);
            self.send_from(key, side.other(), Carried::Reset);
            let end = self.connections.get_mut(&key).map(|connection| connection.end_mut(side));
            if let (Some(last), Some(Parcel { due, carried: Carried::Reset })) =
                (last, end.and_then(|end| end.flight.back_mut()))
            {
                *due = last.max(*due) + READ_WITHIN;
            }
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
