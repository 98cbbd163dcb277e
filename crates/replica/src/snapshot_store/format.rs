//! The bytes of a snapshot file.
//!
//! Owns: header, chunks and trailer, and the proof that a file is whole. Never: where files are or which one
//! counts.
//!
//! ```text
//! header   "KUNCISNP"  format u32  meta length u32  meta (JSON)  crc32 of all before
//! chunk    length u32 (not 0)  bytes  crc32 of length and bytes           any number of these
//! trailer  0 u32  chunks u64  bytes in chunks u64  crc32 of all bytes in chunks u32  crc32 of the trailer
//! ```
//!
//! Integers are big-endian. A file that was cut at any place lacks its trailer; a changed bit breaks one of the
//! checksums; a lost, doubled or moved chunk breaks the trailer's.

#[cfg(fuzzing)]
pub(crate) mod fuzz;

use crate::data_folder::ClusterId;
use crate::raft_types::SnapshotMeta;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// Version of this format. Magic, format, length and the header's checksum stay where they are in later ones.
pub(crate) const SNAPSHOT_FORMAT: u32 = 1;
/// The most bytes in one chunk, so that a reader can bound its memory.
pub const CHUNK_BYTES_MAX: usize = 16 << 20;

const MAGIC: &[u8; 8] = b"KUNCISNP";
const META_BYTES_MAX: usize = 16 << 20;

/// What the header says about the snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) struct Header {
    /// The cluster, as hex digits.
    pub(crate) cluster: String,
    /// Last entry and membership.
    pub(crate) meta: SnapshotMeta,
    /// The largest node id that had been given out by then.
    pub(crate) ids_used: u64,
}

impl Header {
    pub(crate) fn new(cluster_id: ClusterId, meta: SnapshotMeta, ids_used: u64) -> Self {
        Self { cluster: cluster_id.to_string(), meta, ids_used }
    }
}

/// Writes a snapshot piece by piece.
pub(crate) struct Writer<W> {
    to: W,
    chunks: u64,
    body_bytes: u64,
    body_checksum: crc32fast::Hasher,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    pub(crate) fn begin(mut to: W, header: &Header) -> io::Result<Self> {
        let meta = serde_json::to_vec(header).map_err(io::Error::other)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(SNAPSHOT_FORMAT.to_be_bytes());
        bytes.extend((meta.len() as u32).to_be_bytes());
        bytes.extend(meta);
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        to.write_all(&bytes)?;
        Ok(Self { to, chunks: 0, body_bytes: 0, body_checksum: crc32fast::Hasher::new() })
    }

    /// Writes a piece of the body. A large one becomes several chunks.
    pub(crate) fn chunk(&mut self, body: &[u8]) -> io::Result<()> {
        for piece in body.chunks(CHUNK_BYTES_MAX) {
            let length = (piece.len() as u32).to_be_bytes();
            self.to.write_all(&length)?;
            self.to.write_all(piece)?;
            self.to.write_all(&checksum_of(&[&length, piece]).to_be_bytes())?;
            self.chunks += 1;
            self.body_bytes += piece.len() as u64;
            self.body_checksum.update(piece);
        }
        Ok(())
    }

    /// Writes the trailer, and gives the target back.
    pub(crate) fn end(mut self) -> io::Result<W> {
        let trailer = trailer(self.chunks, self.body_bytes, self.body_checksum.finalize());
        self.to.write_all(&trailer)?;
        Ok(self.to)
    }
}

/// Reads a snapshot piece by piece, and checks everything it reads.
pub(crate) struct Reader<R> {
    from: R,
    header: Header,
    chunks: u64,
    body_bytes: u64,
    body_checksum: crc32fast::Hasher,
    is_done: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    pub(crate) fn begin(mut from: R) -> io::Result<Self> {
        let mut bytes = vec![0; MAGIC.len() + 8];
        read_exact(&mut from, &mut bytes, "header")?;
        if !bytes.starts_with(MAGIC) {
            return Err(damaged("it doesn't begin like a snapshot of kunci"));
        }
        let format = be_u32(&bytes[8..12]);
        let meta_bytes = be_u32(&bytes[12..16]) as usize;
        if meta_bytes > META_BYTES_MAX {
            return Err(damaged(&format!(
                "its header has {meta_bytes} bytes, expected at most {META_BYTES_MAX}"
            )));
        }
        bytes.resize(16 + meta_bytes, 0);
        read_exact(&mut from, &mut bytes[16..], "header")?;
        let mut checksum = [0; 4];
        read_exact(&mut from, &mut checksum, "header")?;
        if crc32fast::hash(&bytes) != u32::from_be_bytes(checksum) {
            return Err(damaged("the checksum of its header doesn't fit"));
        }
        // After the checksum, so that a damaged format isn't taken for a later one.
        if format != SNAPSHOT_FORMAT {
            let text = format!("it has format {format}, this version reads format {SNAPSHOT_FORMAT}");
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let header = serde_json::from_slice(&bytes[16..])
            .map_err(|error| damaged(&format!("its header can't be read: {error}")))?;
        let body_checksum = crc32fast::Hasher::new();
        Ok(Self { from, header, chunks: 0, body_bytes: 0, body_checksum, is_done: false })
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// The next piece of the body; `None` after the last, when the trailer was found right.
    pub(crate) fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        if self.is_done {
            return Ok(None);
        }
        let mut length = [0; 4];
        read_exact(&mut self.from, &mut length, "chunk")?;
        let bytes = u32::from_be_bytes(length) as usize;
        if bytes == 0 {
            self.check_trailer()?;
            self.is_done = true;
            return Ok(None);
        }
        if bytes > CHUNK_BYTES_MAX {
            let text = format!("chunk {} has {bytes} bytes, expected at most {CHUNK_BYTES_MAX}", self.chunks);
            return Err(damaged(&text));
        }
        let mut body = vec![0; bytes];
        read_exact(&mut self.from, &mut body, "chunk")?;
        let mut checksum = [0; 4];
        read_exact(&mut self.from, &mut checksum, "chunk")?;
        if checksum_of(&[&length, &body]) != u32::from_be_bytes(checksum) {
            return Err(damaged(&format!("the checksum of chunk {} doesn't fit", self.chunks)));
        }
        self.chunks += 1;
        self.body_bytes += body.len() as u64;
        self.body_checksum.update(&body);
        Ok(Some(Bytes::from(body)))
    }

    fn check_trailer(&mut self) -> io::Result<()> {
        let expected = trailer(self.chunks, self.body_bytes, self.body_checksum.clone().finalize());
        // Its first four bytes, the zero length, are read.
        let mut found = vec![0; expected.len() - 4];
        read_exact(&mut self.from, &mut found, "trailer")?;
        if found != expected[4..] {
            return Err(damaged("its trailer doesn't fit its chunks"));
        }
        match self.from.read(&mut [0; 1])? {
            0 => Ok(()),
            _ => Err(damaged("bytes follow its trailer")),
        }
    }
}

fn trailer(chunks: u64, body_bytes: u64, body_checksum: u32) -> Vec<u8> {
    let mut bytes = 0_u32.to_be_bytes().to_vec();
    bytes.extend(chunks.to_be_bytes());
    bytes.extend(body_bytes.to_be_bytes());
    bytes.extend(body_checksum.to_be_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

fn checksum_of(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

fn be_u32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn read_exact(from: &mut impl Read, bytes: &mut [u8], part: &str) -> io::Result<()> {
    from.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged(&format!("it ends in the middle of a {part}")),
        _ => error,
    })
}

fn damaged(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
