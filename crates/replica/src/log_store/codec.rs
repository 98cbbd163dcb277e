//! The bytes of our part of a log record.
//!
//! Owns: how a log id, a vote and an entry's payload are written. Never: the framing around them (type and
//! checksum of the whole record), which is the log library's.
//!
//! All integers are big-endian and of fixed width, and nothing has an optional part. That matters for
//! recovery: a record's length follows from its type, except for a payload, and a payload's length stands in
//! a header with a checksum of its own. So a damaged length is seen as damage, and is never mistaken for a
//! record that a crash cut short (see `scan`).

use crate::raft_types::{EntryBytes, LogId, Payload, Vote};
use bytes::Bytes;
use codeq::{Decode, Encode};
use openraft::impls::leader_id_std::LeaderId;
use std::io::{self, Read, Write};

/// Version of the records below. A reader refuses any other.
pub(crate) const RECORD_FORMAT: u8 = 1;
/// Format, kind, length, checksum of these.
pub(crate) const PAYLOAD_HEADER_BYTES: usize = 1 + 1 + 4 + 4;
/// Record type (the library's) and log id: what stands before a payload header in an entry's record.
pub(crate) const ENTRY_PREFIX_BYTES: usize = 4 + LOG_ID_BYTES;
/// The library's checksum behind every record: a CRC-32 in eight bytes, so that the first four are zero.
pub(crate) const RECORD_CHECKSUM_BYTES: usize = 8;
/// The most bytes of one entry. A batch of commands stays far below; more is damage or a mistake.
pub(crate) const ENTRY_BYTES_MAX: usize = 64 << 20;

const LOG_ID_BYTES: usize = 16;
const KIND_BLANK: u8 = 0;
const KIND_COMMANDS: u8 = 1;
const KIND_MEMBERSHIP: u8 = 2;

/// A log id in the log: term, index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogIdRecord(pub(crate) LogId);

/// A vote in the log: format, term, candidate, committed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) struct VoteRecord(pub(crate) Vote);

/// What an entry carries, in the log: header, body.
#[derive(Clone, Debug)]
pub(crate) struct PayloadRecord(pub(crate) Payload);

/// The library keeps a free field for its user in each checkpoint; we need none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoUserData;

/// The header in front of a payload's body.
#[derive(Clone, Copy)]
pub(crate) struct PayloadHeader {
    kind: u8,
    /// Bytes of the body.
    pub(crate) body_bytes: usize,
}

impl PayloadHeader {
    fn to_bytes(self) -> io::Result<[u8; PAYLOAD_HEADER_BYTES]> {
        if self.body_bytes > ENTRY_BYTES_MAX {
            let text =
                format!("an entry has {} bytes, at most {ENTRY_BYTES_MAX} may be written", self.body_bytes);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let mut bytes = [0; PAYLOAD_HEADER_BYTES];
        bytes[0] = RECORD_FORMAT;
        bytes[1] = self.kind;
        bytes[2..6].copy_from_slice(&(self.body_bytes as u32).to_be_bytes());
        let checksum = crc32fast::hash(&bytes[..6]);
        bytes[6..].copy_from_slice(&checksum.to_be_bytes());
        Ok(bytes)
    }

    /// Reads a header, or says what is wrong with it.
    pub(crate) fn parse(bytes: &[u8; PAYLOAD_HEADER_BYTES]) -> io::Result<Self> {
        let [format, kind, l0, l1, l2, l3, c0, c1, c2, c3] = *bytes;
        let (found, expected) = (u32::from_be_bytes([c0, c1, c2, c3]), crc32fast::hash(&bytes[..6]));
        if found != expected {
            return Err(damaged(format!("entry header has checksum {found:08x}, expected {expected:08x}")));
        }
        check_format("entry", format)?;
        let body_bytes = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        if body_bytes > ENTRY_BYTES_MAX {
            return Err(damaged(format!("entry has {body_bytes} bytes, expected at most {ENTRY_BYTES_MAX}")));
        }
        Ok(Self { kind, body_bytes })
    }
}

impl Encode for LogIdRecord {
    fn encode<W: Write>(&self, mut to: W) -> Result<usize, io::Error> {
        to.write_all(&self.0.leader_id.term.to_be_bytes())?;
        to.write_all(&self.0.index.to_be_bytes())?;
        Ok(LOG_ID_BYTES)
    }
}

impl Decode for LogIdRecord {
    fn decode<R: Read>(mut from: R) -> Result<Self, io::Error> {
        let term = read_u64(&mut from)?;
        Ok(Self(LogId::new_term_index(term, read_u64(&mut from)?)))
    }
}

impl Encode for VoteRecord {
    fn encode<W: Write>(&self, mut to: W) -> Result<usize, io::Error> {
        to.write_all(&[RECORD_FORMAT])?;
        to.write_all(&self.0.leader_id.term.to_be_bytes())?;
        to.write_all(&self.0.leader_id.voted_for.to_be_bytes())?;
        to.write_all(&[u8::from(self.0.committed)])?;
        Ok(18)
    }
}

impl Decode for VoteRecord {
    fn decode<R: Read>(mut from: R) -> Result<Self, io::Error> {
        check_format("vote", read_u8(&mut from)?)?;
        let (term, voted_for) = (read_u64(&mut from)?, read_u64(&mut from)?);
        let committed = match read_u8(&mut from)? {
            0 => false,
            1 => true,
            other => return Err(damaged(format!("vote has the mark {other}, expected 0 or 1"))),
        };
        Ok(Self(Vote { leader_id: LeaderId { term, voted_for }, committed }))
    }
}

impl Encode for PayloadRecord {
    fn encode<W: Write>(&self, mut to: W) -> Result<usize, io::Error> {
        let membership;
        let (kind, body): (u8, &[u8]) = match &self.0 {
            Payload::Blank => (KIND_BLANK, &[]),
            Payload::Normal(entry) => (KIND_COMMANDS, &entry.0),
            Payload::Membership(members) => {
                membership = serde_json::to_vec(members).map_err(io::Error::other)?;
                (KIND_MEMBERSHIP, &membership)
            }
        };
        to.write_all(&PayloadHeader { kind, body_bytes: body.len() }.to_bytes()?)?;
        to.write_all(body)?;
        Ok(PAYLOAD_HEADER_BYTES + body.len())
    }
}

impl Decode for PayloadRecord {
    fn decode<R: Read>(mut from: R) -> Result<Self, io::Error> {
        let mut header = [0; PAYLOAD_HEADER_BYTES];
        from.read_exact(&mut header)?;
        let header = PayloadHeader::parse(&header)?;
        let mut body = vec![0; header.body_bytes];
        from.read_exact(&mut body)?;
        match header.kind {
            KIND_BLANK if body.is_empty() => Ok(Self(Payload::Blank)),
            KIND_COMMANDS => Ok(Self(Payload::Normal(EntryBytes(Bytes::from(body))))),
            KIND_MEMBERSHIP => {
                let members = serde_json::from_slice(&body)
                    .map_err(|e| damaged(format!("membership entry can't be read: {e}")))?;
                Ok(Self(Payload::Membership(members)))
            }
            other => Err(damaged(format!("entry has the unknown kind {other}"))),
        }
    }
}

impl Encode for NoUserData {
    fn encode<W: Write>(&self, _: W) -> Result<usize, io::Error> {
        Ok(0)
    }
}

impl Decode for NoUserData {
    fn decode<R: Read>(_: R) -> Result<Self, io::Error> {
        Ok(Self)
    }
}

fn check_format(what: &str, format: u8) -> io::Result<()> {
    if format == RECORD_FORMAT {
        return Ok(());
    }
    Err(damaged(format!("{what} has format {format}, this version reads format {RECORD_FORMAT}")))
}

fn damaged(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn read_u8(from: &mut impl Read) -> io::Result<u8> {
    let mut bytes = [0; 1];
    from.read_exact(&mut bytes)?;
    Ok(bytes[0])
}

fn read_u64(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_be_bytes(bytes))
}
