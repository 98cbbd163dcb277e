//! Durations as people write them.
//!
//! Owns: reading `30s` and writing it back. Never: a bound; each option has its own.

use std::time::Duration;

/// Why a text is no duration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidDuration {
    /// A number alone: 30 what?
    #[error("`{0}` has no unit: write `{0}s` for seconds or `{0}ms` for milliseconds")]
    NoUnit(String),
    /// Not a whole number and a unit.
    #[error("`{0}` is no duration: write a whole number and a unit, such as 500ms, 30s, 1m or 1h")]
    Malformed(String),
    /// More than a duration can say.
    #[error("`{0}` is too long: the longest is 1000h")]
    TooLong(String),
}

/// Beyond this something else was meant, and no policy allows it.
const LONGEST: Duration = Duration::from_secs(1000 * 3600);

/// Reads a whole number with the unit `ms`, `s`, `m` or `h`.
pub(crate) fn parse(text: &str) -> Result<Duration, InvalidDuration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let ms_each: u64 = match unit {
        _ if number.is_empty() => return Err(InvalidDuration::Malformed(text.to_owned())),
        "" => return Err(InvalidDuration::NoUnit(text.to_owned())),
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(InvalidDuration::Malformed(text.to_owned())),
    };
    let ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(ms_each));
    match ms.map(Duration::from_millis) {
        Some(duration) if duration <= LONGEST => Ok(duration),
        _ => Err(InvalidDuration::TooLong(text.to_owned())),
    }
}

/// Reads a duration that is more than nothing.
pub(crate) fn parse_positive(text: &str) -> Result<Duration, String> {
    match parse(text) {
        Ok(duration) if duration.is_zero() => {
            Err("found 0, expected more than nothing, such as 30s".to_owned())
        }
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads how long to wait; nothing is `--try`, said outright.
pub(crate) fn parse_wait(text: &str) -> Result<Duration, String> {
    match parse(text) {
        Ok(duration) if duration.is_zero() => {
            Err("a wait of 0 could mean two things: use --try to ask once, or leave \
            --wait out to wait as long as it takes"
                .to_owned())
        }
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

/// Whole milliseconds, as they go over the wire.
pub(crate) fn as_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Writes milliseconds for people: `950ms`, `12.3s`, `4m05s`, `2h00m`.
pub(crate) fn human(ms: u64) -> String {
    let seconds = ms / 1_000;
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 if ms % 1_000 < 100 => format!("{seconds}s"),
        1_000..60_000 => format!("{seconds}.{}s", ms % 1_000 / 100),
        60_000..3_600_000 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_whole_number_and_a_unit() {
        for (text, ms) in [("500ms", 500), ("30s", 30_000), ("1m", 60_000), ("1h", 3_600_000), ("0s", 0)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn a_plain_number_is_refused_with_the_unit_to_add() {
        let said = parse("30").unwrap_err().to_string();
        assert!(said.contains("`30s`") && said.contains("`30ms`"), "{said}");
    }

    #[test]
    fn what_cannot_be_a_duration_is_refused() {
        for text in ["", "s", "-1s", "1.5s", "30 s", "1d", "99999999999999999999s", "1001h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    /// C99: asking once and waiting without a limit are separate options, not a magic zero.
    #[test]
    fn a_wait_of_nothing_is_refused_and_names_both_meanings() {
        let said = parse_wait("0s").unwrap_err();
        assert!(said.contains("--try") && said.contains("leave --wait out"), "{said}");
    }

    #[test]
    fn people_read_the_two_largest_units() {
        let said: Vec<String> = [950, 12_340, 3_000, 245_000, 7_260_000].map(human).to_vec();
        assert_eq!(said, ["950ms", "12.3s", "3s", "4m05s", "2h01m"]);
    }
}
