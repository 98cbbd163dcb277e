//! The lines of the native protocol, for both ends: `docs/protocol.md` has the grammar.
//!
//! Owns: how a request or an answer is written as one line of text, and read back. Never: a rule of the business; a
//! number that a line can carry may still be out of policy.

mod answer;
mod coding;
mod fault;
mod fields;
mod parse;
mod read;
mod request;
mod seconds;
mod write;

pub use answer::{Answer, At, Grant, Held, Outcome, Refused, Status, Welcome};
pub use fault::{BadLine, CodingFault, LineFault};
pub use read::BadAnswer;
pub use request::{Acquire, Hello, Line, Op, Request, Secret, Subject, Tag, WaitFor};

/// The most bytes of a line, its end not counted. Answers keep to it too.
pub const LINE_BYTES_MAX: usize = 4_096;

/// The version of the protocol that this release speaks.
pub const VERSION: u32 = 1;
