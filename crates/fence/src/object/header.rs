//! The first line of a fenced object: `kunci-fence 1 token=42 write=00d1c0ffee00d1c0 value`.
//!
//! Owns: its bytes, both ways. Never: what comes after it.

use kunci_types::FencingToken;
use std::fmt;

/// No header is longer, its line break included.
pub(super) const BYTES_MAX: u64 = 128;

/// Who wrote the object, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) token: FencingToken,
    /// The write's name, at random: a writer knows its own writes by it, and no two contents are the same.
    pub(super) name: u64,
    pub(super) kind: Kind,
}

/// What follows the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The value, which may be empty.
    Value,
    /// Nothing: the value was deleted.
    Deleted,
}

impl Header {
    /// Reads it, and where the value begins; none when this is no fenced object.
    pub(super) fn read(content: &[u8]) -> Option<(Self, usize)> {
        let end = content.iter().take(usize::try_from(BYTES_MAX).ok()?).position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(content.get(..end)?).ok()?;
        let [mark, version, token, name, kind] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let header = Self {
            token: FencingToken::presented(token.strip_prefix("token=")?.parse().ok()?).ok()?,
            name: u64::from_str_radix(name.strip_prefix("write=")?, 16).ok()?,
            kind: match kind {
                "value" => Kind::Value,
                "deleted" => Kind::Deleted,
                _ => return None,
            },
        };
        // One spelling only: what we wouldn't write, we don't read.
        let is_ours =
            (mark, version) == ("kunci-fence", "1") && header.to_string().as_bytes() == &content[..=end];
        is_ours.then_some((header, end + 1))
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Value => "value",
            Kind::Deleted => "deleted",
        };
        writeln!(f, "kunci-fence 1 token={} write={:016x} {kind}", self.token, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for number in [1, 42, (1 << 53) - 1] {
            for kind in [Kind::Value, Kind::Deleted] {
                for name in [0, 7, u64::MAX] {
                    let header = Header { token: FencingToken::presented(number).unwrap(), name, kind };
                    let content = format!("{header}first\nsecond");
                    let (read, value_at) = Header::read(content.as_bytes()).unwrap();
                    assert_eq!((read, &content[value_at..]), (header, "first\nsecond"));
                    assert!(value_at as u64 <= BYTES_MAX);
                }
            }
        }
    }

    #[test]
    fn what_we_would_not_write_is_no_header() {
        let good = "kunci-fence 1 token=42 write=00000000000000ff value\n";
        assert!(Header::read(good.as_bytes()).is_some());
        for (from, to) in [
            ("kunci-fence 1", "kunci-fence 2"),
            ("kunci", "other"),
            ("42", "042"),
            ("42", "+42"),
            ("42", "0"),
            ("42", "9007199254740992"),
            ("00ff", "00FF"),
            ("00ff", "0ff"),
            ("value", "Value"),
            ("value", "value "),
            (" 1 ", "  1 "),
            ("\n", ""),
            ("\n", "\r\n"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_eq!(Header::read(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(Header::read(b""), None);
        assert_eq!(Header::read(&[0xff; 300]), None);
    }
}
