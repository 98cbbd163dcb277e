//! What has to be random.
//!
//! Owns: request ids and jitter. Never: a generator with a state, which a fork would copy.

use crate::error::{Certainty, Error, ErrorKind, Retry};
use kunci_types::RequestId;

/// 128 fresh random bits: an id is never used for a second request, not even after a fork.
pub(crate) fn request_id() -> Result<RequestId, Error> {
    let no_bits = |why: String| {
        let detail = format!("draw a request id: {why}");
        Error::new(ErrorKind::NoRandomness, Certainty::NotApplied, Retry::Anytime, detail)
    };
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).map_err(|error| no_bits(error.to_string()))?;
    let text: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    RequestId::parse(&text).map_err(|error| no_bits(error.to_string()))
}

/// 0 to 1,000, for spreading renewals; without random bits nothing is spread.
pub(crate) fn jitter() -> u32 {
    getrandom::u32().map_or(0, |bits| bits % 1_001)
}
