//! What another member says: read or refused, never a panic. The first byte says what it should be.
#![no_main]

use kunci_replica::fuzzing::{peer_frame, peer_stream, sealed_handshake};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((b'h', body)) => sealed_handshake(body),
        Some((b'.', stream)) => peer_stream(stream),
        Some((kind, body)) => peer_frame(*kind, body),
        None => peer_stream(&[]),
    }
});
