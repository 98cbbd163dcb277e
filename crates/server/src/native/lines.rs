//! The bytes of a connection, cut into lines.
//!
//! Owns: that a line has its limit before it is kept, and that a silent connection keeps no memory. Never: what a line
//! means.

use crate::streams::ClientStream;
use kunci_api::native::{BadLine, LINE_BYTES_MAX, Line, LineFault};
use std::io;

/// How much is read at a time: more than the longest line.
const READ_BYTES: usize = 16 << 10;

/// What has come and isn't taken yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    taken: usize,
    /// The line that the bytes go on with was refused as too long.
    is_too_long: bool,
}

/// What a connection's bytes turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// A request.
    Line(Line),
    /// A line that can't be read.
    Bad(BadLine),
    /// More of a line that was refused as too long, and that still doesn't end.
    MoreOfTheSame,
}

impl Lines {
    /// Reads what has come, at most [`READ_BYTES`]; 0 is the end, and none a false alarm. Only for when [`Self::next`] gave
    /// nothing more.
    pub(super) fn read_from(&mut self, stream: &impl ClientStream) -> io::Result<Option<usize>> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        let kept = self.bytes.len();
        self.bytes.resize(READ_BYTES, 0);
        let read = match stream.try_read(self.bytes.get_mut(kept..).unwrap_or_default()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            read => read.map(Some),
        };
        self.bytes.truncate(kept + read.as_ref().map_or(0, |count| count.unwrap_or(0)));
        self.give_back();
        read
    }

    /// The next line. None when there is no whole one.
    pub(super) fn next(&mut self) -> Option<Came> {
        loop {
            let rest = self.bytes.get(self.taken..).unwrap_or_default();
            match rest.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    self.taken += end + 1;
                    if std::mem::take(&mut self.is_too_long) {
                        continue;
                    }
                    let line = Line::parse(rest.get(..end).unwrap_or_default());
                    return Some(line.map_or_else(Came::Bad, Came::Line));
                }
                // A `\r` may come before the end.
                None if rest.len() > LINE_BYTES_MAX + 1 => {
                    self.taken = self.bytes.len();
                    if std::mem::replace(&mut self.is_too_long, true) {
                        return Some(Came::MoreOfTheSame);
                    }
                    return Some(Came::Bad(BadLine { subject: None, tag: None, why: LineFault::TooLong }));
                }
                None => {
                    self.give_back();
                    return None;
                }
            }
        }
    }

    /// Whether a line has begun and not ended.
    pub(super) fn has_begun(&self) -> bool {
        self.taken < self.bytes.len() || self.is_too_long
    }

    /// Forgets what wasn't taken.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn give_back(&mut self) {
        if self.taken == self.bytes.len() {
            (self.bytes, self.taken) = (Vec::new(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(lines: &mut Lines, bytes: &[u8]) -> Vec<String> {
        lines.bytes.extend_from_slice(bytes);
        let all = std::iter::from_fn(|| lines.next());
        all.map(|came| match came {
            Came::Line(line) => format!("{:?}", line.request.subject().op),
            Came::Bad(bad) => bad.to_string(),
            Came::MoreOfTheSame => "more".to_owned(),
        })
        .collect()
    }

    #[test]
    fn a_line_may_come_in_pieces_and_keeps_no_memory_behind() {
        let mut lines = Lines::default();
        assert_eq!(came(&mut lines, b"P\r\nQ a\nH"), ["Ping", "Status"]);
        assert!(lines.has_begun());
        assert_eq!(came(&mut lines, b" 1"), [""; 0]);
        assert_eq!(came(&mut lines, b"\n"), ["Hello"]);
        assert!(!lines.has_begun());
        assert_eq!(lines.bytes.capacity(), 0);
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_is_kept() {
        let mut lines = Lines::default();
        assert_eq!(came(&mut lines, &[b'x'; 4_097]), [""; 0]);
        let refused = came(&mut lines, b"x");
        assert!(refused[0].starts_with("the line is too long"), "{refused:?}");
        assert_eq!(lines.bytes.len(), lines.taken);
        assert_eq!(came(&mut lines, &[b'x'; 5_000]), ["more"]);
        assert_eq!(came(&mut lines, b"xx\nP\n"), ["Ping"]);
    }
}
