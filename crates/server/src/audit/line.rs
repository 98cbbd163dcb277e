//! One line, as JSON, written field by field: there are many thousands a second.
//!
//! Owns: how a value is spelled, and what is shown of a lease id. Never: what belongs in a line.

use super::wall_clock;
use kunci_types::{ClientAddress, LeaseId};
use std::io::Write as _;
use twox_hash::XxHash3_64;

/// How much of the hash of a lease id is shown. Of its 128 random bits at least 88 stay unknown, whatever the hash.
const FINGERPRINT_DIGITS: usize = 10;

/// What is shown of a lease id: enough to tell leases apart, too little to find one out.
pub fn fingerprint(lease_id: &LeaseId) -> String {
    let mut text = format!("{:016x}", XxHash3_64::oneshot(lease_id.as_bytes()));
    text.truncate(FINGERPRINT_DIGITS);
    text
}

/// The text of the second that was written last: most lines are of the same one.
#[derive(Debug)]
pub(super) struct Times {
    seconds: u64,
    text: String,
}

impl Default for Times {
    fn default() -> Self {
        Self { seconds: 0, text: wall_clock::seconds_text(0) }
    }
}

impl Times {
    fn text(&mut self, seconds: u64) -> &str {
        if self.seconds != seconds {
            *self = Self { seconds, text: wall_clock::seconds_text(seconds) };
        }
        &self.text
    }
}

/// A line that is being written.
pub(super) struct Line<'a> {
    into: &'a mut Vec<u8>,
}

impl<'a> Line<'a> {
    /// Begins one.
    pub(super) fn begin(into: &'a mut Vec<u8>, times: &mut Times, kind: &str, wall_ms: u64) -> Self {
        into.extend_from_slice(b"{\"kind\":\"");
        into.extend_from_slice(kind.as_bytes());
        into.extend_from_slice(b"\",\"wallTime\":\"");
        into.extend_from_slice(times.text(wall_ms / 1_000).as_bytes());
        let ms = wall_ms % 1_000;
        into.push(b'.');
        for digit in [ms / 100, ms / 10 % 10, ms % 10] {
            into.push(b'0' + u8::try_from(digit).unwrap_or_default());
        }
        into.extend_from_slice(b"Z\"");
        Self { into }
    }

    fn name(&mut self, name: &str) {
        self.into.extend_from_slice(b",\"");
        self.into.extend_from_slice(name.as_bytes());
        self.into.extend_from_slice(b"\":");
    }

    pub(super) fn number(&mut self, name: &str, number: u64) {
        self.name(name);
        push_number(self.into, number);
    }

    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        push_text(self.into, text);
    }

    pub(super) fn text_if(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// A place in the log's order.
    pub(super) fn at(&mut self, index: u64, number: u32) {
        self.name("at");
        self.into.push(b'"');
        push_number(self.into, index);
        self.into.push(b'.');
        push_number(self.into, number.into());
        self.into.push(b'"');
    }

    pub(super) fn address(&mut self, address: Option<ClientAddress>) {
        if let Some(address) = address {
            self.name("address");
            // A vector takes all that is written to it.
            let _ = write!(self.into, "\"{address}\"");
        }
    }

    pub(super) fn lease(&mut self, lease_id: Option<LeaseId>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let Some(lease_id) = lease_id else { return };
        self.name("leaseFingerprint");
        self.into.push(b'"');
        let hash = XxHash3_64::oneshot(lease_id.as_bytes());
        for digit in 0..FINGERPRINT_DIGITS {
            let digit = hash >> (60 - 4 * digit) & 15;
            self.into.extend(usize::try_from(digit).ok().and_then(|digit| DIGITS.get(digit)));
        }
        self.into.push(b'"');
    }

    /// A value that is JSON already.
    pub(super) fn json(&mut self, name: &str, json: &str) {
        self.name(name);
        self.into.extend_from_slice(json.as_bytes());
    }

    pub(super) fn end(self) {
        self.into.extend_from_slice(b"}\n");
    }
}

fn push_number(into: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut first = digits.len();
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        first = at;
        if number == 0 {
            break;
        }
    }
    into.extend_from_slice(digits.get(first..).unwrap_or_default());
}

/// A text in quotes.
pub(super) fn push_text(into: &mut Vec<u8>, text: &str) {
    into.push(b'"');
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        into.extend_from_slice(text.as_bytes());
    } else {
        for byte in text.bytes() {
            match byte {
                b'"' | b'\\' => into.extend_from_slice(&[b'\\', byte]),
                0..b' ' => {
                    let _ = write!(into, "\\u{byte:04x}");
                }
                _ => into.push(byte),
            }
        }
    }
    into.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use kunci_api::AuditRecord;

    #[test]
    fn what_is_written_by_hand_reads_back_as_json() {
        let mut bytes = Vec::new();
        let mut line = Line::begin(&mut bytes, &mut Times::default(), "granted", 1_700_000_000_007);
        line.at(u64::MAX, 0);
        line.number("fencingToken", 0);
        line.text("resource", "a\"\\\u{1}é");
        line.address(Some(std::net::SocketAddr::from(([10, 0, 0, 1], 80)).into()));
        line.lease(Some(LeaseId::from_bytes([7; 16])));
        line.end();
        assert_eq!(bytes.pop(), Some(b'\n'));
        let read: AuditRecord = serde_json::from_slice(&bytes).unwrap();
        let wanted = AuditRecord {
            kind: "granted".to_owned(),
            wall_time: "2023-11-14T22:13:20.007Z".to_owned(),
            at: Some(format!("{}.0", u64::MAX)),
            fencing_token: Some(0),
            resource: Some("a\"\\\u{1}é".to_owned()),
            address: Some("10.0.0.1:80".to_owned()),
            lease_fingerprint: Some(fingerprint(&LeaseId::from_bytes([7; 16]))),
            ..AuditRecord::default()
        };
        assert_eq!(read, wanted);
        assert_eq!(fingerprint(&LeaseId::from_bytes([7; 16])).len(), FINGERPRINT_DIGITS);
    }
}
