//! Decimal seconds: `30`, `0.5`.
//!
//! Owns: the way between them and whole milliseconds. Never: a bound of the policy.

/// Reads seconds with at most three decimals, as milliseconds. What is too large for any policy stays too large.
pub(super) fn parse(text: &str) -> Option<u64> {
    let (whole, decimals) = match text.split_once('.') {
        Some((whole, decimals)) => (whole, decimals),
        None => (text, "0"),
    };
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(decimals) || decimals.len() > 3 {
        return None;
    }
    // Digits only: nothing but the size can be wrong.
    let seconds: u64 = whole.parse().unwrap_or(u64::MAX);
    let ms: u64 = format!("{decimals:0<3}").parse().ok()?;
    Some(seconds.saturating_mul(1_000).saturating_add(ms))
}

/// Appends milliseconds as seconds, with no more decimals than it needs.
pub(super) fn write(ms: u64, out: &mut Vec<u8>) {
    let (whole, ms) = (ms / 1_000, ms % 1_000);
    out.extend(whole.to_string().bytes());
    if ms > 0 {
        let decimals = format!(".{ms:03}");
        out.extend(decimals.trim_end_matches('0').bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_may_have_three_decimals() {
        for (text, ms) in [("0", 0), ("30", 30_000), ("0.5", 500), ("1.25", 1_250), ("007.001", 7_001)] {
            assert_eq!(parse(text), Some(ms), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_number_of_seconds() {
        for text in ["", "-1", "+1", ".5", "5.", "1.2345", "1e3", "NaN", "1,5", "0x1", "٣"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    /// Case C95: no value, however large, wraps.
    #[test]
    fn what_is_too_large_stays_too_large() {
        for text in ["18446744073709551615", "99999999999999999999999999", "18446744073709551.616"] {
            assert_eq!(parse(text), Some(u64::MAX), "{text}");
        }
    }

    #[test]
    fn milliseconds_are_written_without_idle_zeros() {
        let written = |ms| {
            let mut out = Vec::new();
            write(ms, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!([0, 30_000, 500, 1_250, 7_001].map(written), ["0", "30", "0.5", "1.25", "7.001"]);
    }
}
