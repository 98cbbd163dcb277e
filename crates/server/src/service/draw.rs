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

/// Draws all three at once.
///
/// # Errors
/// When the system gives no randomness.
pub(super) fn draw() -> Result<Drawn, getrandom::Error> {
    let (mut lease_id, mut attempt, mut request_id) = ([0; 16], [0; 8], [0; 16]);
    for bytes in [&mut lease_id[..], &mut attempt[..], &mut request_id[..]] {
        getrandom::fill(bytes)?;
    }
    Ok(Drawn {
        lease_id: LeaseId::from_bytes(lease_id),
        attempt: Attempt::new(u64::from_ne_bytes(attempt)),
        // 22 characters of ASCII break no rule of request ids.
        request_id: RequestId::from_log(&URL_SAFE_NO_PAD.encode(request_id)),
    })
}
