//! A frozen state and its bytes, in chunks, and the way back.
//!
//! Owns: which bytes equal states have. Never: a file, a checksum (see the replica).

use crate::codec::record::{read_head, read_holding, read_request, write_head, write_holding, write_request};
use crate::codec::{DecodeError, FORMAT_1, Reader, SNAPSHOT_FORMAT, Writer};
use crate::index::Index;
use crate::spread::SpreadMap;
use crate::table::{Head, LockTable, State};
use alloc::sync::Arc;
use alloc::vec::Vec;
use immutable_chunkmap::map::MapM;
use kunci_types::{ClusterTime, Revision};
use twox_hash::XxHash3_128;

/// A chunk is closed once it has this many bytes, so that a reader needs little memory.
const CHUNK_BYTES: usize = 64 * 1024;

const HEAD: u8 = 1;
const HOLDINGS: u8 = 2;
const REQUESTS: u8 = 3;
const END: u8 = 4;

/// The state at one instant. Taking it shares the table's structure: O(1), whatever the table's size; what
/// changes afterwards is copied piece by piece.
#[derive(Clone, Debug)]
pub struct Snapshot(State);

impl LockTable {
    /// Freezes the state as it is now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.state.clone())
    }

    /// A fingerprint of the state: equal for equal states, on every replica.
    pub fn digest(&self) -> u128 {
        self.snapshot().digest()
    }
}

impl Snapshot {
    /// The state's bytes: equal for equal states, cut alike. Each chunk is read on its own.
    pub fn chunks(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        let mut head = chunk(HEAD);
        head.u8(SNAPSHOT_FORMAT);
        write_head(&mut head, &self.0.head);
        head.u64(self.0.holdings.len() as u64);
        head.u64(self.0.requests.len() as u64);
        let mut holdings = self.0.holdings.into_iter();
        let mut requests = self.0.requests.iter();
        core::iter::once(head.bytes)
            .chain(core::iter::from_fn(move || {
                fill(HOLDINGS, &mut holdings, |writer, (name, holding)| write_holding(writer, name, holding))
            }))
            .chain(core::iter::from_fn(move || {
                fill(REQUESTS, &mut requests, |writer, (key, request)| write_request(writer, key, request))
            }))
            .chain(core::iter::once([END].to_vec()))
    }

    /// See [`LockTable::digest`].
    pub fn digest(&self) -> u128 {
        let mut hash = XxHash3_128::new();
        for chunk in self.chunks() {
            hash.write(&chunk);
        }
        hash.finish_128()
    }

    /// Checks every invariant of the frozen state: looks at all of it, and needs memory for the index of what is held and
    /// who waits, not for that of the remembered requests, of which no invariant speaks.
    ///
    /// # Panics
    /// When one is broken.
    pub fn check(&self) {
        let table = LockTable { index: Index::derive_live(&self.0), state: self.0.clone() };
        table.check_resources();
    }

    /// The revision of the state.
    pub fn revision(&self) -> Revision {
        self.0.head.revision
    }

    /// The cluster time of the state.
    pub fn now(&self) -> ClusterTime {
        self.0.head.now
    }
}

fn chunk(kind: u8) -> Writer {
    let mut writer = Writer::with_capacity(256);
    writer.u8(kind);
    writer
}

fn fill<T>(kind: u8, items: &mut impl Iterator<Item = T>, write: impl Fn(&mut Writer, T)) -> Option<Vec<u8>> {
    let first = items.next()?;
    let mut writer = Writer::with_capacity(CHUNK_BYTES + 4 * 1024);
    writer.u8(kind);
    write(&mut writer, first);
    while writer.bytes.len() < CHUNK_BYTES {
        let Some(item) = items.next() else { break };
        write(&mut writer, item);
    }
    Some(writer.bytes)
}

/// Builds a table from the chunks of a snapshot, fed in order.
#[derive(Debug, Default)]
pub struct Restore {
    begun: Option<Begun>,
    ended: bool,
}

#[derive(Debug)]
struct Begun {
    format: u8,
    state: State,
    holdings: u64,
    requests: u64,
}

impl Restore {
    /// Reads the next chunk.
    ///
    /// # Errors
    /// Says in plain words when another release wrote it, or when it is damaged or out of place.
    pub fn chunk(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let format = self.begun.as_ref().map_or(SNAPSHOT_FORMAT, |begun| begun.format);
        let mut reader = Reader { bytes, format };
        let kind = reader.u8("snapshot chunk")?;
        match (kind, &mut self.begun) {
            (HEAD, None) => self.begun = Some(read_beginning(&mut reader)?),
            (HOLDINGS, Some(begun)) => {
                while !reader.bytes.is_empty() {
                    let (resource, holding) = read_holding(&mut reader)?;
                    begun.state.holdings.insert_cow(resource, Arc::new(holding));
                }
            }
            (REQUESTS, Some(begun)) => {
                while !reader.bytes.is_empty() {
                    let (key, request) = read_request(&mut reader)?;
                    begun.state.requests.insert(key, Arc::new(request));
                }
            }
            (END, Some(_)) => self.ended = true,
            (found, _) => {
                return Err(DecodeError::Meaningless { what: "snapshot chunk", found: found.into() });
            }
        }
        reader.end("a snapshot chunk")
    }

    /// The table, once every chunk was read.
    ///
    /// # Errors
    /// When chunks are missing.
    ///
    /// # Panics
    /// When the snapshot breaks an invariant: it was made by a replica whose state can't be trusted.
    pub fn finish(self) -> Result<LockTable, DecodeError> {
        let Some(begun) = self.begun.filter(|begun| self.ended && begun.is_whole()) else {
            return Err(DecodeError::Ends { what: "a snapshot" });
        };
        let index = Index::derive(&begun.state);
        let table = LockTable { state: begun.state, index };
        table.check_resources();
        Ok(table)
    }
}

impl Begun {
    fn is_whole(&self) -> bool {
        self.state.holdings.len() as u64 == self.holdings && self.state.requests.len() as u64 == self.requests
    }
}

fn read_beginning(reader: &mut Reader<'_>) -> Result<Begun, DecodeError> {
    let found = reader.u8("snapshot format")?;
    if !(FORMAT_1..=SNAPSHOT_FORMAT).contains(&found) {
        return Err(DecodeError::UnknownFormat { what: "a snapshot", found, known: SNAPSHOT_FORMAT });
    }
    let head: Head = read_head(reader)?;
    let state = State { head, holdings: MapM::new(), requests: SpreadMap::default() };
    Ok(Begun {
        format: found,
        state,
        holdings: reader.u64("number of holdings")?,
        requests: reader.u64("number of requests")?,
    })
}
