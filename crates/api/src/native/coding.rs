//! Percent-coding of keys and values.
//!
//! Owns: which bytes stand for themselves. Never: what a text means.

use super::fault::CodingFault;
use std::borrow::Cow;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Whether a byte stands for itself. Those from 0x80 up are parts of UTF-8 characters.
fn is_plain(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f && !matches!(byte, b'%' | b'=' | b'#' | b',')
}

/// Appends `text`, with what has a meaning in a line as `%XX`.
pub(super) fn encode(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        if is_plain(byte) {
            out.push(byte);
        } else {
            let digit = |four_bits: u8| HEX.get(usize::from(four_bits)).copied().unwrap_or(b'0');
            out.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// Takes the text back. Nothing is copied when nothing is coded.
pub(super) fn decode(field: &str) -> Result<Cow<'_, str>, CodingFault> {
    let bytes = field.as_bytes();
    let Some(first) = bytes.iter().position(|byte| !is_plain(*byte)) else { return Ok(Cow::Borrowed(field)) };
    let mut text = Vec::with_capacity(bytes.len());
    text.extend_from_slice(bytes.get(..first).unwrap_or_default());
    let mut at = first;
    while let Some(byte) = bytes.get(at) {
        if *byte == b'%' {
            let pair = bytes.get(at + 1).zip(bytes.get(at + 2));
            let coded = pair.and_then(|(high, low)| Some((hex(*high)? << 4) | hex(*low)?));
            text.push(coded.ok_or(CodingFault::Percent { at })?);
            at += 3;
        } else if is_plain(*byte) {
            text.push(*byte);
            at += 1;
        } else {
            return Err(CodingFault::Reserved { at });
        }
    }
    String::from_utf8(text).map(Cow::Owned).map_err(|_| CodingFault::NotUtf8)
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str) -> String {
        let mut out = Vec::new();
        encode(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_has_a_meaning_in_a_line_is_coded_and_the_rest_is_readable() {
        assert_eq!(encoded("orders/42"), "orders/42");
        assert_eq!(encoded("a b%c=d#e,f\n\u{7f}é"), "a%20b%25c%3Dd%23e%2Cf%0A%7Fé");
    }

    #[test]
    fn any_byte_may_be_coded_in_either_case() {
        assert_eq!(decode("%61%c3%A9").unwrap(), "aé");
        assert!(matches!(decode("plain").unwrap(), Cow::Borrowed("plain")));
    }

    #[test]
    fn what_is_wrongly_coded_is_refused_with_its_byte() {
        for (field, at) in [("a%", 1), ("a%4", 1), ("ab%4x", 2), ("%+1", 0)] {
            assert_eq!(decode(field), Err(CodingFault::Percent { at }), "{field}");
        }
        for (field, at) in [("a=b", 1), ("#", 0), ("a\tb", 1), ("ab,", 2), ("%20 ", 3)] {
            assert_eq!(decode(field), Err(CodingFault::Reserved { at }), "{field}");
        }
        assert_eq!(decode("%ff"), Err(CodingFault::NotUtf8));
    }
}
