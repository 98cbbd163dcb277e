//! What happened: who, when, what; and its hash.
//!
//! Owns: the hash that two runs of a seed have in common, and the lines that a person reads. Never: changes a run: with
//! and without the lines it is the same.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// Where a trace's lines go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Nowhere.
    Dropped,
    /// They are kept, to be shown when the run fails.
    Kept,
    /// Shown at once, to stderr.
    Shown,
}

/// The trace of one world. A clone is another handle to the same.
#[derive(Clone)]
pub struct Trace {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    began: Instant,
    hash: u64,
    lines: Lines,
    text: String,
}

impl Trace {
    /// An empty one of a world that begins now.
    pub fn new(lines: Lines) -> Self {
        let inner = Inner { began: Instant::now(), hash: OFFSET, lines, text: String::new() };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// When the world began.
    pub fn began(&self) -> Instant {
        self.lock().began
    }

    /// Something that a person wants to read: `who` did or saw `what`.
    pub fn tell(&self, who: &str, what: impl FnOnce() -> String) {
        let mut inner = self.lock();
        let what = what();
        let now = inner.began.elapsed();
        inner.fold(now.as_nanos() as u64);
        inner.fold_bytes(who.as_bytes());
        inner.fold_bytes(what.as_bytes());
        inner.add(who, &what);
    }

    /// Something that a person may want to read, and that isn't part of the run.
    pub fn say(&self, who: &str, what: &str) {
        self.lock().add(who, what);
    }

    /// Something that only two runs have to agree on.
    pub fn mark(&self, words: &[u64]) {
        let mut inner = self.lock();
        let now = inner.began.elapsed().as_nanos() as u64;
        inner.fold(now);
        words.iter().for_each(|word| inner.fold(*word));
    }

    /// The hash of everything so far.
    pub fn hash(&self) -> u64 {
        self.lock().hash
    }

    /// The lines that were kept.
    pub fn text(&self) -> String {
        self.lock().text.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::print_stderr, reason = "whoever asked for the lines gets them as they come")]
fn show(line: &str) {
    eprintln!("{line}");
}

impl Inner {
    fn add(&mut self, who: &str, what: &str) {
        if self.lines == Lines::Dropped {
            return;
        }
        let line = format!("{:>10.3} {who:<6} {what}", self.began.elapsed().as_secs_f64());
        if self.lines == Lines::Shown {
            show(&line);
        } else {
            // A String takes whatever is written into it.
            let _ = writeln!(self.text, "{line}");
        }
    }

    fn fold(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(PRIME).rotate_left(29);
    }

    fn fold_bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.fold(u64::from_le_bytes(word));
        }
        self.fold(bytes.len() as u64);
    }
}
