//! Percent-encoding and query strings.
//!
//! Owns: that what is malformed, unknown or repeated is refused by name. Never: guesses.

use kunci_api::Invalid;

fn invalid(field: &str, text: impl Into<String>) -> Invalid {
    Invalid::Value { field: field.to_owned(), text: text.into() }
}

/// Decodes a percent-encoded text.
///
/// # Errors
/// When a `%` isn't followed by two hexadecimal digits, or the bytes aren't UTF-8.
pub(super) fn decode(field: &str, encoded: &str) -> Result<String, Invalid> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(invalid(field, "a % isn't followed by two hexadecimal digits: send %25 for a %"));
        };
        // Two hexadecimal digits fit.
        bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        invalid(field, format!("the decoded text isn't UTF-8 at byte {at}"))
    })
}

/// Takes a query string apart into the values of `names`, in their order.
///
/// # Errors
/// Names a parameter that isn't among them, or that comes twice.
pub(super) fn parameters<const N: usize>(
    query: Option<&str>,
    names: [&str; N],
) -> Result<[Option<String>; N], Invalid> {
    let mut values = [const { None }; N];
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode("query", name)?;
        let at = names.iter().position(|known| *known == name);
        let Some(slot) = at.and_then(|at| values.get_mut(at)) else {
            let known = if N == 0 { "none".to_owned() } else { names.join(", ") };
            return Err(invalid(&name, format!("unknown parameter: expected {known}")));
        };
        // In a query a plus is a space; a plus itself is sent as %2B.
        let value = decode(&name, &value.replace('+', " "))?;
        if slot.replace(value).is_some() {
            return Err(invalid(&name, "the parameter comes twice"));
        }
    }
    Ok(values)
}

/// Reads a whole number between two bounds.
///
/// # Errors
/// Says what was found and what was expected.
pub(super) fn number(field: &str, text: &str, min: u64, max: u64) -> Result<u64, Invalid> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && (min..=max).contains(number));
    number.ok_or_else(|| invalid(field, format!("`{text}` isn't a whole number from {min} to {max}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_taken_strictly() {
        assert_eq!(decode("resource", "orders%2F42%25").unwrap(), "orders/42%");
        assert_eq!(decode("resource", "%c3%A9").unwrap(), "é");
        for bad in ["%", "%2", "%zz", "a%2", "%+1", "%ff"] {
            assert_eq!(decode("resource", bad).unwrap_err().field(), Some("resource"), "{bad}");
        }
    }

    #[test]
    fn a_query_is_taken_apart_and_unknown_or_repeated_parameters_are_named() {
        let [prefix, after] = parameters(Some("after=a%26b&prefix=x+y"), ["prefix", "after"]).unwrap();
        assert_eq!((prefix.as_deref(), after.as_deref()), (Some("x y"), Some("a&b")));
        let refused = |query| parameters(Some(query), ["prefix"]).unwrap_err().to_string();
        assert_eq!(refused("prefx=a"), "prefx: unknown parameter: expected prefix");
        assert_eq!(refused("prefix=a&prefix=a"), "prefix: the parameter comes twice");
        assert_eq!(parameters(None, ["prefix"]).unwrap(), [None]);
    }

    #[test]
    fn numbers_are_digits_within_bounds() {
        assert_eq!(number("limit", "7", 1, 10).unwrap(), 7);
        for bad in ["", "0", "11", "+7", "7.0", "1e1", "99999999999999999999"] {
            assert!(number("limit", bad, 1, 10).is_err(), "{bad}");
        }
    }
}
