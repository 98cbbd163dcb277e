//! The wall clock, for what no log entry has a time of, and for the age of files.

use jiff::Timestamp;

/// Now, in ms since 1970; 0 for a clock that is before that.
pub fn now_ms() -> u64 {
    crate::service::wall_clock::ms_since_1970()
}

/// A time as RFC 3339 in UTC, to the second, without the zone.
pub(super) fn seconds_text(seconds: u64) -> String {
    let at = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    // A clock that shows no year up to 9999 is broken: the last time that can be written stands for it.
    let mut text = format!("{:.0}", at.unwrap_or(Timestamp::MAX));
    text.pop();
    text
}

/// Reads a time as people write it, in ms since 1970: `2026-11-30T03:12:00Z`, also with another offset, without seconds, and
/// without a zone, which is UTC then.
pub fn time_ms(text: &str) -> Option<u64> {
    let at = text.parse::<Timestamp>().ok().or_else(|| {
        let written: jiff::civil::DateTime = text.parse().ok()?;
        jiff::tz::Offset::UTC.to_timestamp(written).ok()
    });
    u64::try_from(at?.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_zone_is_in_utc() {
        let at = time_ms("2026-11-30T03:12:00Z");
        assert_eq!(at, Some(1_796_008_320_000));
        for text in ["2026-11-30T03:12", "2026-11-30 03:12:00", "2026-11-30T04:12:00+01:00"] {
            assert_eq!(time_ms(text), at, "{text}");
        }
        assert_eq!(time_ms("03:12"), None);
    }
}
