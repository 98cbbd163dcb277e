//! Text that people choose: resource names, metadata, and the rules they share with ids.
//!
//! Owns: which bytes a name may have. Never: rewrites what it was given; a name is taken or refused.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::sync::Arc;
use core::borrow::Borrow;
use core::fmt;
use unicode_normalization::UnicodeNormalization;

/// Why a text can't be a name, an owner or a request id; byte positions count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidText {
    /// Nothing was given.
    #[error("{what} is empty: expected 1 to {max} bytes")]
    Empty {
        /// What the text was meant to be.
        what: &'static str,
        /// The most bytes it may have.
        max: usize,
    },
    /// Too many bytes.
    #[error("{what} has {bytes} bytes: expected at most {max}")]
    TooLong {
        /// What the text was meant to be.
        what: &'static str,
        /// How many bytes were found.
        bytes: usize,
        /// The most bytes it may have.
        max: usize,
    },
    /// A control character.
    #[error("{what} has a control character at byte {at}: remove it")]
    Control {
        /// What the text was meant to be.
        what: &'static str,
        /// The byte at which the character begins.
        at: usize,
    },
    /// White space at an end.
    #[error("{what} begins or ends with white space at byte {at}: trim it")]
    EdgeSpace {
        /// What the text was meant to be.
        what: &'static str,
        /// The byte at which the white space begins.
        at: usize,
    },
    /// Not in Unicode normalization form C.
    #[error("{what} is not in Unicode NFC at byte {at}: normalize it before sending")]
    NotNfc {
        /// What the text was meant to be.
        what: &'static str,
        /// The first byte at which the normalized text would differ.
        at: usize,
    },
    /// Text where 22 characters of unpadded base64url were expected.
    #[error("lease id is malformed: expected 22 characters of unpadded base64url as given with the grant")]
    NotALeaseId,
}

/// Checks `text` against the rules that names, owners and request ids share.
pub(crate) fn check(what: &'static str, text: &str, max: usize) -> Result<(), InvalidText> {
    if text.is_empty() {
        return Err(InvalidText::Empty { what, max });
    }
    if text.len() > max {
        return Err(InvalidText::TooLong { what, bytes: text.len(), max });
    }
    if let Some((at, _)) = text.char_indices().find(|(_, c)| c.is_control()) {
        return Err(InvalidText::Control { what, at });
    }
    if text.starts_with(char::is_whitespace) {
        return Err(InvalidText::EdgeSpace { what, at: 0 });
    }
    if text.ends_with(char::is_whitespace) {
        return Err(InvalidText::EdgeSpace { what, at: text.trim_end().len() });
    }
    check_nfc(what, text)
}

fn check_nfc(what: &'static str, text: &str) -> Result<(), InvalidText> {
    // Almost every name is ASCII, which is always in NFC.
    if text.is_ascii() {
        return Ok(());
    }
    let mut given = text.chars();
    let mut at = 0;
    for wanted in text.nfc() {
        match given.next() {
            Some(found) if found == wanted => at += found.len_utf8(),
            _ => return Err(InvalidText::NotNfc { what, at }),
        }
    }
    if given.next().is_some() {
        return Err(InvalidText::NotNfc { what, at });
    }
    Ok(())
}

/// Name of what is locked: 1 to 256 bytes of UTF-8 in NFC, no control characters, no white space at its ends.
///
/// Compared byte by byte: case counts, and `orders` and `orders/42` are unrelated.
///
/// # Example
/// ```
/// use kunci_types::ResourceName;
/// let name = ResourceName::parse("orders/42").unwrap();
/// assert_eq!(name.namespace().as_str(), "orders");
/// assert_eq!(
///     ResourceName::parse("a\u{7}b").unwrap_err().to_string(),
///     "resource name has a control character at byte 1: remove it"
/// );
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName(Arc<str>);

impl ResourceName {
    /// The most bytes a name may have.
    pub const BYTES_MAX: usize = 256;

    /// Takes a name from outside, or says at which byte it is at fault.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        check("resource name", text, Self::BYTES_MAX)?;
        Ok(Self(text.into()))
    }

    /// Takes back a name that was checked when it entered the log.
    ///
    /// Unicode's tables grow, so a name that one release accepted must not be judged again by another.
    pub fn from_log(text: &str) -> Self {
        Self(text.into())
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the first `/`, or the whole name.
    pub fn namespace(&self) -> Namespace {
        Namespace(self.namespace_str().into())
    }

    /// The text of its namespace, for a look at what is kept by namespace.
    pub fn namespace_str(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(namespace, _)| namespace)
    }
}

/// What quotas and permissions are given to: the part of a resource name before its first `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(Arc<str>);

impl Borrow<str> for Namespace {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Namespace {
    /// The namespace's text, possibly empty (for names that begin with `/`).
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Free text that travels with a lease and is shown to whoever may read the lock: up to 1 KiB of UTF-8.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Metadata(Arc<str>);

impl Metadata {
    /// The most bytes metadata may have.
    pub const BYTES_MAX: usize = 1024;

    /// Takes metadata from outside, or refuses it for its length.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        if text.len() > Self::BYTES_MAX {
            return Err(InvalidText::TooLong { what: "metadata", bytes: text.len(), max: Self::BYTES_MAX });
        }
        Ok(Self(text.into()))
    }

    /// Takes back metadata that was checked when it entered the log.
    pub fn from_log(text: &str) -> Self {
        Self(text.into())
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! shown_as_text {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
        impl From<$name> for String {
            fn from(text: $name) -> String {
                (*text.0).to_owned()
            }
        }
    )*};
}
pub(crate) use shown_as_text;

shown_as_text!(ResourceName, Namespace, Metadata);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_at_fault_is_refused_with_the_position() {
        let fault = |text: &str| ResourceName::parse(text).unwrap_err();
        assert!(matches!(fault(""), InvalidText::Empty { .. }));
        assert!(matches!(fault(&"a".repeat(257)), InvalidText::TooLong { bytes: 257, .. }));
        assert!(matches!(fault("ab\u{0}c"), InvalidText::Control { at: 2, .. }));
        assert!(matches!(fault("é\u{85}"), InvalidText::Control { at: 2, .. }));
        assert!(matches!(fault(" a"), InvalidText::EdgeSpace { at: 0, .. }));
        assert!(matches!(fault("ab\u{3000}"), InvalidText::EdgeSpace { at: 2, .. }));
        assert!(matches!(fault("x/e\u{301}"), InvalidText::NotNfc { at: 2, .. }));
    }

    #[test]
    fn names_at_their_limits_are_taken_as_they_are() {
        for text in ["a", "orders/42", "é", "a b", &"z".repeat(256)] {
            assert_eq!(ResourceName::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn the_namespace_ends_at_the_first_slash() {
        let namespace = |text: &str| String::from(ResourceName::parse(text).unwrap().namespace());
        assert_eq!(namespace("orders/42/x"), "orders");
        assert_eq!(namespace("orders"), "orders");
        assert_eq!(namespace("/x"), "");
    }
}
