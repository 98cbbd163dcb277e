//! Where the server is.
//!
//! Owns: what `--url` may be, and how a resource's name becomes a path. Never: sends anything.

use http::Uri;

/// A server's address, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerUrl(String);

impl ServerUrl {
    /// Reads `http://host:port`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let expected = "expected http://host:port, such as http://127.0.0.1:7400";
        let uri: Uri = text.parse().map_err(|error| format!("`{text}` is no URL ({error}); {expected}"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(format!("`{text}` asks for TLS, which this version doesn't speak; {expected}"));
            }
            _ => return Err(format!("`{text}` doesn't begin with http://; {expected}")),
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(format!("`{text}` has a path; {expected}"));
        }
        match uri.authority() {
            Some(authority) if !authority.host().is_empty() => Ok(Self(format!("http://{authority}"))),
            _ => Err(format!("`{text}` has no host; {expected}")),
        }
    }

    /// As it is shown and passed on.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// `/locks/{resource}` and what follows it.
pub(crate) fn lock_path(resource: &str, rest: &str) -> String {
    format!("/locks/{}{rest}", encode(resource))
}

/// `path` with those of `parameters` that have a value.
pub(crate) fn with_query(path: &str, parameters: &[(&str, Option<String>)]) -> String {
    let there = parameters.iter().filter_map(|(name, value)| value.as_ref().map(|value| (name, value)));
    let pairs: Vec<String> = there.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// Percent-encodes everything but the characters that never need it.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => encoded.push(char::from(byte)),
            // A name of dots alone would be taken for a step in the path, so dots are encoded too.
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_one_segment_of_the_path_whatever_its_name() {
        assert_eq!(lock_path("orders/42", "/acquire"), "/locks/orders%2F42/acquire");
        assert_eq!(lock_path("..", ""), "/locks/%2E%2E");
        assert_eq!(lock_path("é ?#", ""), "/locks/%C3%A9%20%3F%23");
    }

    #[test]
    fn a_url_is_a_scheme_a_host_and_a_port() {
        assert_eq!(ServerUrl::parse("http://127.0.0.1:7400/").unwrap().as_str(), "http://127.0.0.1:7400");
        for text in ["", "127.0.0.1:7400", "https://a:1", "ftp://a", "http://a/b", "http://a?b", "http://"] {
            let said = ServerUrl::parse(text).unwrap_err();
            assert!(said.contains("expected http://host:port"), "{text}: {said}");
        }
    }

    #[test]
    fn a_query_has_only_what_was_given() {
        let path = with_query("/locks", &[("prefix", Some("a/b".to_owned())), ("after", None)]);
        assert_eq!(path, "/locks?prefix=a%2Fb");
        assert_eq!(with_query("/locks", &[("after", None)]), "/locks");
    }
}
