//! `kunci fence proxy` as its users have it: a real process in front of a real HTTP service.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by a panic, in its helpers too")]

mod ask;
mod order;
mod process;
mod protocol;
mod restart;
mod streaming;
mod upstream;
