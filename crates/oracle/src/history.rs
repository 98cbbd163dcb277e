//! What was asked and answered, and when.
//!
//! Owns: the record of every call. Never: an opinion about it; those are in `invariants`.

mod call;
mod told;

pub use call::{Answer, Call, Op, Outcome, Position};
pub use told::{Held, Refused, Told};

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A record that many clients write to.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<Vec<Call>>>);

impl History {
    /// Adds a call, and gives it its number.
    pub fn add(&self, mut call: Call) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        call.number = calls.len() as u64;
        calls.push(call);
    }

    /// Everything so far.
    pub fn calls(&self) -> Vec<Call> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes it down, a JSON object a line.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
        for call in self.calls() {
            serde_json::to_writer(&mut file, &call)?;
            file.write_all(b"\n")?;
        }
        file.flush()
    }
}
