//! What has to be random.
//!
//! Owns: request ids and jitter, and the seam through which a simulator brings its own bits. Never: a generator with a
//! state, which a fork would copy.

use crate::error::{Certainty, Error, ErrorKind, Retry};
use kunci_types::RequestId;
use std::{fmt, io};

/// Where a client's random bits come from.
pub trait Randomness: fmt::Debug + Send + Sync + 'static {
    /// Fills `bits`, which have to be different each time, also after a fork of the process.
    ///
    /// # Errors
    /// As the source says.
    fn fill(&self, bits: &mut [u8]) -> io::Result<()>;
}

/// The system's source for secrets: what every client uses that isn't told otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandomness;

impl Randomness for SystemRandomness {
    fn fill(&self, bits: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bits).map_err(io::Error::other)
    }
}

/// 128 fresh bits: an id is never used for a second request.
pub(crate) fn request_id(source: &dyn Randomness) -> Result<RequestId, Error> {
    let no_bits = |why: String| {
        let detail = format!("draw a request id: {why}");
        Error::new(ErrorKind::NoRandomness, Certainty::NotApplied, Retry::Anytime, detail)
    };
    let mut bits = [0_u8; 16];
    source.fill(&mut bits).map_err(|error| no_bits(error.to_string()))?;
    let text = format!("{:032x}", u128::from_be_bytes(bits));
    RequestId::parse(&text).map_err(|error| no_bits(error.to_string()))
}

/// 0 to 1,000, for spreading renewals; without random bits nothing is spread.
pub(crate) fn jitter(source: &dyn Randomness) -> u32 {
    let mut bits = [0_u8; 4];
    source.fill(&mut bits).map_or(0, |()| u32::from_le_bytes(bits) % 1_001)
}
