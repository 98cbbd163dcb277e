//! The bytes of a gate's file.
//!
//! Owns: header, frames, records, and telling an unfinished end from damage. Never: touches a file.
//!
//! ```text
//! header  "kuncigat", version u32, length of the base u64, zeros u64, CRC-32 of these
//! frame   marker u32, length of the body u32, CRC-32 of length, offset and body, body
//! body    records: kind u8, token u64, length of the name u16, name
//! ```
//! Integers are little endian. Behind the header is the base, frames that were synced before the file got its name;
//! then one frame for each sync. The offset is in the sum, so that bytes of an older life of the file are no frame.

use crate::gate::kept::Kept;
use kunci_types::{FencingToken, ResourceName};

pub(super) const HEADER_BYTES: usize = 32;
const MAGIC: &[u8; 8] = b"kuncigat";
const VERSION: u32 = 1;
const MARKER: [u8; 4] = *b"kgf1";
const FRAME_HEAD_BYTES: usize = 12;
/// Larger than what one sync ever carries; a longer length is damage, or no frame at all.
const BODY_BYTES_MAX: usize = 1 << 20;
/// What one frame of the base carries at most, in bytes; one record more fits in any case.
const BASE_BODY_BYTES: usize = BODY_BYTES_MAX / 2;
const KEPT: u8 = 1;
const FLOOR: u8 = 2;

/// Why a file can't be used as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Written by a later version.
    Version(u32),
    /// What was whole once isn't any more.
    Damage {
        /// Where, in bytes.
        at: usize,
        /// What was found and expected.
        what: &'static str,
    },
}

/// What a file holds.
#[derive(Debug)]
pub(super) struct Contents {
    /// Where the base ends, in bytes.
    pub(super) base_end: u64,
    /// Where the last whole frame ends, in bytes; what is behind it was never finished.
    pub(super) end: u64,
}

/// The records of one frame.
#[derive(Debug, Default)]
pub(super) struct Body(Vec<u8>);

impl Body {
    pub(super) fn kept(&mut self, resource: &ResourceName, token: FencingToken) {
        self.record(KEPT, token, resource.as_str());
    }

    pub(super) fn floor(&mut self, floor: FencingToken) {
        self.record(FLOOR, floor, "");
    }

    fn record(&mut self, kind: u8, token: FencingToken, name: &str) {
        self.0.push(kind);
        self.0.extend_from_slice(&token.get().to_le_bytes());
        // A name has at most 256 bytes.
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
        self.0.extend_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(name.as_bytes());
    }

    /// The frame with these records at this offset. Without any it says that what is before it was synced.
    pub(super) fn frame(&self, offset: u64) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX).to_le_bytes();
        let sum = checksum(length, offset, &self.0).to_le_bytes();
        [&MARKER, &length, &sum, self.0.as_slice()].concat()
    }
}

/// A whole file that holds what is kept.
pub(super) fn file_of(kept: &Kept) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    let mut body = Body::default();
    if let Some(floor) = kept.floor() {
        body.floor(floor);
    }
    for (resource, token) in kept.iter() {
        body.kept(resource, token);
        if body.0.len() >= BASE_BODY_BYTES {
            bytes.extend(std::mem::take(&mut body).frame(bytes.len() as u64));
        }
    }
    if !body.0.is_empty() {
        bytes.extend(body.frame(bytes.len() as u64));
    }
    let header = header((bytes.len() - HEADER_BYTES) as u64);
    bytes[..HEADER_BYTES].copy_from_slice(&header);
    bytes
}

fn header(base_bytes: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..20].copy_from_slice(&base_bytes.to_le_bytes());
    let sum = crc32fast::hash(&header[..28]);
    header[28..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Reads a whole file into `kept`.
pub(super) fn read(bytes: &[u8], kept: &mut Kept) -> Result<Contents, Fault> {
    let base_bytes = read_header(bytes)?;
    let base_end = usize::try_from(base_bytes).ok().and_then(|base| base.checked_add(HEADER_BYTES));
    let Some(base_end) = base_end.filter(|end| *end <= bytes.len()) else {
        return Err(Fault::Damage { at: bytes.len(), what: "the file is shorter than its header says" });
    };
    let mut at = HEADER_BYTES;
    while at < bytes.len() {
        match frame_at(bytes, at) {
            Some(body) => {
                records(body, at, kept)?;
                at += FRAME_HEAD_BYTES + body.len();
            }
            // The base was whole before the file got its name.
            None if at < base_end => {
                return Err(Fault::Damage { at, what: "a record of the base doesn't match its checksum" });
            }
            None if (at + 1..bytes.len()).any(|later| frame_at(bytes, later).is_some()) => {
                let what = "a record doesn't match its checksum, and whole ones follow it";
                return Err(Fault::Damage { at, what });
            }
            None => break,
        }
    }
    Ok(Contents { base_end: base_end as u64, end: at as u64 })
}

fn read_header(bytes: &[u8]) -> Result<u64, Fault> {
    let what = "the file doesn't begin as that of a gate";
    let header = bytes.get(..HEADER_BYTES).ok_or(Fault::Damage { at: 0, what })?;
    let number = |from: usize| {
        let mut wide = [0; 8];
        wide.copy_from_slice(&header[from..from + 8]);
        u64::from_le_bytes(wide)
    };
    // As u32: the lower halves.
    let (version, sum) = (number(8) & u64::from(u32::MAX), number(24) >> 32);
    if &header[..8] != MAGIC || u64::from(crc32fast::hash(&header[..28])) != sum {
        return Err(Fault::Damage { at: 0, what });
    }
    if version != u64::from(VERSION) {
        return Err(Fault::Version(u32::try_from(version).unwrap_or(u32::MAX)));
    }
    Ok(number(12))
}

/// The body of the frame at this offset, if there is a whole one.
fn frame_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let head = bytes.get(at..at + FRAME_HEAD_BYTES)?;
    if head[..4] != MARKER {
        return None;
    }
    let length = [head[4], head[5], head[6], head[7]];
    let body_bytes = usize::try_from(u32::from_le_bytes(length)).ok().filter(|n| *n <= BODY_BYTES_MAX)?;
    let body = bytes.get(at + FRAME_HEAD_BYTES..)?.get(..body_bytes)?;
    (checksum(length, at as u64, body).to_le_bytes() == head[8..]).then_some(body)
}

fn checksum(length: [u8; 4], offset: u64, body: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&length);
    sum.update(&offset.to_le_bytes());
    sum.update(body);
    sum.finalize()
}

fn records(mut body: &[u8], at: usize, kept: &mut Kept) -> Result<(), Fault> {
    while !body.is_empty() {
        let what = "a record with a right checksum can't be read: was it written by a later version?";
        body = record(body, kept).ok_or(Fault::Damage { at, what })?;
    }
    Ok(())
}

/// Takes one record, and gives back what follows it.
fn record<'a>(body: &'a [u8], kept: &mut Kept) -> Option<&'a [u8]> {
    let (&kind, rest) = body.split_first()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (name, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let token = FencingToken::presented(u64::from_le_bytes(*number)).ok()?;
    match kind {
        KEPT => {
            let resource = ResourceName::parse(std::str::from_utf8(name).ok()?).ok()?;
            // Below the floor it is forgotten.
            if kept.floor().is_none_or(|floor| token > floor) {
                kept.restore(resource, token);
            }
        }
        FLOOR => {
            kept.raise_floor(token);
        }
        _ => return None,
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::tests::{name, token};

    /// A base of two resources, then three frames and the mark behind the last.
    fn file() -> (Vec<u8>, Vec<usize>) {
        let mut kept = Kept::new(10);
        kept.restore(name("base/1"), token(1));
        kept.restore(name("base/2"), token(2));
        let mut bytes = file_of(&kept);
        let mut ends = vec![bytes.len()];
        for number in 3..6 {
            let mut body = Body::default();
            body.kept(&name("later"), token(number));
            body.kept(&name(&format!("later/{number}")), token(number));
            bytes.extend(body.frame(bytes.len() as u64));
            ends.push(bytes.len());
        }
        bytes.extend(Body::default().frame(bytes.len() as u64));
        (bytes, ends)
    }

    fn read_back(bytes: &[u8]) -> Result<(Kept, Contents), Fault> {
        let mut kept = Kept::new(10);
        read(bytes, &mut kept).map(|contents| (kept, contents))
    }

    #[test]
    fn a_file_reads_as_it_was_written() {
        let (bytes, _) = file();
        let (kept, contents) = read_back(&bytes).unwrap();
        assert_eq!(contents.end, bytes.len() as u64);
        assert_eq!(kept.len(), 6);
        assert_eq!(kept.of(&name("base/2")), Some(token(2)));
        assert_eq!(kept.of(&name("later")), Some(token(5)));
        let (again, _) = read_back(&file_of(&kept)).unwrap();
        assert_eq!(again.of(&name("later/4")), Some(token(4)));
    }

    #[test]
    fn a_file_cut_at_any_byte_holds_every_frame_before_the_cut_or_says_that_its_base_is_damaged() {
        let (bytes, ends) = file();
        for cut in 0..bytes.len() {
            let whole = ends.iter().rposition(|end| *end <= cut);
            match (read_back(&bytes[..cut]), whole) {
                (Err(Fault::Damage { .. }), None) => {}
                (Ok((kept, contents)), Some(frames)) => {
                    assert_eq!(contents.end, ends[frames] as u64, "cut at {cut}");
                    let largest = (frames > 0).then(|| token(frames as u64 + 2));
                    assert_eq!(kept.of(&name("later")), largest, "cut at {cut}");
                }
                (found, _) => panic!("cut at {cut}: {:?}", found.map(|(_, contents)| contents)),
            }
        }
    }

    /// What was synced is followed by the mark, so a flipped bit is never taken for an unfinished end. In the mark itself
    /// it costs nothing: the mark is what is cut.
    #[test]
    fn one_flipped_bit_anywhere_is_found() {
        let (bytes, ends) = file();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                match read_back(&flipped) {
                    Err(_) => assert!(at < ends[3], "byte {at} of the mark"),
                    Ok((kept, contents)) => {
                        assert!(at >= ends[3], "byte {at}, bit {bit} went unnoticed");
                        assert_eq!((kept.len(), contents.end), (6, ends[3] as u64));
                    }
                }
            }
        }
    }

    #[test]
    fn zeros_and_leftovers_behind_the_last_frame_are_an_unfinished_end() {
        let (bytes, ends) = file();
        let mut zeros = bytes[..ends[2]].to_vec();
        zeros.resize(ends[2] + 5_000, 0);
        assert_eq!(read_back(&zeros).unwrap().1.end, ends[2] as u64);
        // A whole frame, but of another place.
        let mut moved = bytes[..ends[1]].to_vec();
        moved.extend_from_slice(&bytes[ends[2]..ends[3]]);
        let (kept, contents) = read_back(&moved).unwrap();
        assert_eq!((contents.end, kept.of(&name("later"))), (ends[1] as u64, Some(token(3))));
    }

    #[test]
    fn a_floor_is_kept_and_what_is_below_it_stays_forgotten() {
        let (mut bytes, _) = file();
        let mut body = Body::default();
        body.floor(token(4));
        bytes.extend(body.frame(bytes.len() as u64));
        let (kept, _) = read_back(&bytes).unwrap();
        assert_eq!((kept.len(), kept.floor()), (2, Some(token(4))));
        assert_eq!(read_back(&file_of(&kept)).unwrap().0.floor(), Some(token(4)));
    }

    #[test]
    fn a_file_of_a_later_version_or_of_something_else_is_refused() {
        let mut later = header(0);
        later[8] = 2;
        let sum = crc32fast::hash(&later[..28]);
        later[28..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(read_back(&later).unwrap_err(), Fault::Version(2));
        let other = b"#!/bin/sh\necho something that is quite long\n";
        assert!(matches!(read_back(other).unwrap_err(), Fault::Damage { at: 0, .. }));
    }
}
