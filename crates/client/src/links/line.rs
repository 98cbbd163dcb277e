//! Lines out of bytes.
//!
//! Owns: where an answer ends, and how long it may be. Never: what it says.

use kunci_api::native::LINE_BYTES_MAX;

/// Bytes that were read and not yet taken out as lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    unread: Vec<u8>,
    /// Up to here there is no line end.
    searched: usize,
}

/// An answer longer than any that a server of ours sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Lines {
    /// Where to put what is read next.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.unread
    }

    /// Hands each whole line, without its end, to `take` until that returns an error.
    pub(super) fn take_all<E: From<TooLong>>(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = 0;
        while let Some(found) = self.unread.iter().skip(self.searched).position(|byte| *byte == b'\n') {
            let end = self.searched + found;
            let line = self.unread.get(start..end).unwrap_or_default();
            take(line.strip_suffix(b"\r").unwrap_or(line))?;
            start = end + 1;
            self.searched = start;
        }
        self.unread.drain(..start);
        self.searched = self.unread.len();
        if self.unread.len() > LINE_BYTES_MAX { Err(TooLong.into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lines: &mut Lines, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        lines.buffer().extend_from_slice(bytes);
        let mut all = Vec::new();
        lines.take_all(|line| {
            all.push(String::from_utf8_lossy(line).into_owned());
            Ok::<(), TooLong>(())
        })?;
        Ok(all)
    }

    #[test]
    fn lines_come_out_whole_however_they_came_in() {
        let mut lines = Lines::default();
        assert_eq!(taken(&mut lines, b"one\r\ntwo\nth"), Ok(vec!["one".to_owned(), "two".to_owned()]));
        assert_eq!(taken(&mut lines, b"re"), Ok(vec![]));
        assert_eq!(taken(&mut lines, b"e\n\n"), Ok(vec!["three".to_owned(), String::new()]));
    }

    #[test]
    fn a_line_without_end_is_given_up_after_its_bound() {
        let mut lines = Lines::default();
        assert_eq!(taken(&mut lines, &[b'x'; LINE_BYTES_MAX]), Ok(vec![]));
        assert_eq!(taken(&mut lines, b"x"), Err(TooLong));
    }
}
