//! Randomness: lease ids, request ids and attempts.
//!
//! Owns: drawing from the system's CSPRNG, anew each time, so that a forked or cloned process repeats nothing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kunci_types::{Attempt, LeaseId, RequestId};

/// What one acquire needs.
pub(super) struct Drawn {
    /// The lease's id, should it be granted.
    pub(super) lease_id: LeaseId,
    /// The call.
    pub(super) attempt: Attempt,
    /// A request id, for a caller that chose none.
    pub(super) request_id: RequestId,
}

/// Draws a request id.
///
/// # Errors
/// When the system gives no randomness.
pub(crate) fn draw_request_id() -> Result<RequestId, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    // 22 characters of ASCII break no rule of request ids.
    Ok(RequestId::from_log(&URL_SAFE_NO_PAD.encode(bytes)))
}

/// Draws all three at once.
///
/// # Errors
/// When the system gives no randomness.
pub(super) fn draw() -> Result<Drawn, getrandom::Error> {
    let (mut lease_id, mut attempt) = ([0; 16], [0; 8]);
    for bytes in [&mut lease_id[..], &mut attempt[..]] {
        getrandom::fill(bytes)?;
    }
    Ok(Drawn {
        lease_id: LeaseId::from_bytes(lease_id),
        attempt: Attempt::new(u64::from_ne_bytes(attempt)),
        request_id: draw_request_id()?,
    })
}
