//! The bytes of entries and snapshots: fixed-width, big-endian, canonical.
//!
//! Owns: how a value is written and read back. Never: judges a value again that was judged when it entered the
//! log; a later release may judge otherwise, and every replica must read the same.

mod command;
mod policy;
mod provenance;
pub(crate) mod record;
mod words;

use crate::command::{Entry, Provenance};
use alloc::vec::Vec;
use kunci_types::ClusterTime;

/// The newest format of entries that this release writes and reads. Format 1 ends behind the commands; format 2 says
/// behind them where they came from. An entry of which that isn't known has format 1, so that its bytes are canonical.
pub const ENTRY_FORMAT: u8 = 2;
/// The format of snapshots that this release writes, and the newest that it reads. Format 1 has no addresses.
pub const SNAPSHOT_FORMAT: u8 = 2;
/// The first format of each.
pub(crate) const FORMAT_1: u8 = 1;

/// Why bytes from the log or a snapshot can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Another release wrote it.
    #[error(
        "{what} has format {found}, and this kunci reads up to {known}: run the release that wrote it, or a newer one"
    )]
    UnknownFormat {
        /// What was read.
        what: &'static str,
        /// Its format.
        found: u8,
        /// The newest format that is known.
        known: u8,
    },
    /// A newer release wrote a command that this one doesn't know.
    #[error(
        "the log holds command {found}, which this kunci doesn't know: run the release that wrote it, or a newer one"
    )]
    UnknownCommand {
        /// The command's number.
        found: u8,
    },
    /// The bytes end too early.
    #[error("the bytes end in the middle of {what}")]
    Ends {
        /// What was being read.
        what: &'static str,
    },
    /// The bytes make no sense.
    #[error("{what} is {found}, which has no meaning")]
    Meaningless {
        /// What was being read.
        what: &'static str,
        /// What was found, as a number.
        found: u64,
    },
    /// There are bytes left over.
    #[error("{bytes} bytes are left over after {what}")]
    LeftOver {
        /// What was read before.
        what: &'static str,
        /// How many are left.
        bytes: usize,
    },
}

impl Entry {
    /// The entry's bytes; the first is its format, at most [`ENTRY_FORMAT`].
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(32 + self.commands.len() * 168);
        let is_known = self.provenance != Provenance::default();
        writer.u8(if is_known { ENTRY_FORMAT } else { FORMAT_1 });
        writer.u64(self.now.as_ms());
        writer.count(self.commands.len());
        for command in &self.commands {
            command::write(&mut writer, command);
        }
        if is_known {
            provenance::write(&mut writer, &self.provenance);
        }
        writer.bytes
    }

    /// Reads the bytes that [`Entry::encode`] made.
    ///
    /// # Errors
    /// Says in plain words when another release wrote them, or when they are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader { bytes, format: ENTRY_FORMAT };
        let found = reader.u8("entry format")?;
        if !(FORMAT_1..=ENTRY_FORMAT).contains(&found) {
            return Err(DecodeError::UnknownFormat { what: "a log entry", found, known: ENTRY_FORMAT });
        }
        let now = ClusterTime::from_ms(reader.u64("entry time")?);
        let commands = reader.list("commands", command::read)?;
        let provenance = match found {
            FORMAT_1 => Provenance::default(),
            _ => provenance::read(&mut reader, commands.len())?,
        };
        reader.end("a log entry")?;
        Ok(Self { now, commands, provenance })
    }
}

/// Gathers bytes.
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes) }
    }

    pub(crate) fn u8(&mut self, number: u8) {
        self.bytes.push(number);
    }

    pub(crate) fn u64(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_be_bytes());
    }

    pub(crate) fn count(&mut self, count: usize) {
        // No entry or text comes near this; were one to, it would be cut here and refused when read.
        self.bytes.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        match value {
            None => self.u8(0),
            Some(value) => {
                self.u8(1);
                write(self, value);
            }
        }
    }
}

/// Takes bytes apart, and never panics whatever they are.
pub(crate) struct Reader<'a> {
    pub(crate) bytes: &'a [u8],
    /// In which format they are.
    pub(crate) format: u8,
}

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(DecodeError::Ends { what })?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        self.take(N, what)?.try_into().map_err(|_| DecodeError::Ends { what })
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        Ok(u8::from_be_bytes(self.array(what)?))
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array(what)?))
    }

    pub(crate) fn count(&mut self, what: &'static str) -> Result<usize, DecodeError> {
        Ok(u32::from_be_bytes(self.array(what)?) as usize)
    }

    pub(crate) fn text(&mut self, what: &'static str) -> Result<&'a str, DecodeError> {
        let count = self.count(what)?;
        let bytes = self.take(count, what)?;
        core::str::from_utf8(bytes)
            .map_err(|fault| DecodeError::Meaningless { what, found: fault.valid_up_to() as u64 })
    }

    pub(crate) fn option<T>(
        &mut self,
        what: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        match self.u8(what)? {
            0 => Ok(None),
            1 => read(self).map(Some),
            found => Err(DecodeError::Meaningless { what, found: found.into() }),
        }
    }

    pub(crate) fn list<T>(
        &mut self,
        what: &'static str,
        read: impl Fn(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.count(what)?;
        // A damaged count reserves no more memory than there are bytes; what the bytes do hold makes it grow.
        let mut items = Vec::with_capacity(count.min(self.bytes.len() / size_of::<T>().max(1)));
        for _ in 0..count {
            items.push(read(self)?);
        }
        Ok(items)
    }

    pub(crate) fn end(&self, what: &'static str) -> Result<(), DecodeError> {
        match self.bytes.len() {
            0 => Ok(()),
            bytes => Err(DecodeError::LeftOver { what, bytes }),
        }
    }
}
