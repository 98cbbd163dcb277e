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
    /// Bytes of a request id.
    request_id: [u8; 16],
}

impl Drawn {
    /// A request id, for a caller that chose none.
    pub(super) fn request_id(&self) -> RequestId {
        request_id_of(&self.request_id)
    }
}

/// Draws a request id.
///
/// # Errors
/// When the system gives no randomness.
pub(crate) fn draw_request_id() -> Result<RequestId, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(request_id_of(&bytes))
}

fn request_id_of(bytes: &[u8; 16]) -> RequestId {
    // 22 characters of ASCII break no rule of request ids.
    RequestId::from_log(&URL_SAFE_NO_PAD.encode(bytes))
}

/// Draws what one acquire needs, in one call of the system.
///
/// # Errors
/// When the system gives no randomness.
pub(super) fn draw() -> Result<Drawn, getrandom::Error> {
    let mut halves = [[0; 8]; 5];
    getrandom::fill(halves.as_flattened_mut())?;
    let [lease_1, lease_2, request_1, request_2, attempt] = halves;
    Ok(Drawn {
        lease_id: LeaseId::from_bytes(joined(lease_1, lease_2)),
        attempt: Attempt::new(u64::from_ne_bytes(attempt)),
        request_id: joined(request_1, request_2),
    })
}

fn joined(first: [u8; 8], second: [u8; 8]) -> [u8; 16] {
    let mut whole = [0; 16];
    whole[..8].copy_from_slice(&first);
    whole[8..].copy_from_slice(&second);
    whole
}
