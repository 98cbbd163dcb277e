//! A lease id as text: 22 characters of unpadded base64url.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kunci_types::{InvalidText, LeaseId};

/// The text that callers get with the grant.
pub fn lease_id_text(lease_id: &LeaseId) -> String {
    URL_SAFE_NO_PAD.encode(lease_id.as_bytes())
}

/// Takes the text back.
///
/// # Errors
/// When it isn't 22 characters of unpadded base64url. The text isn't repeated: it may be most of a secret.
pub fn parse_lease_id(text: &str) -> Result<LeaseId, InvalidText> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    bytes.map(LeaseId::from_bytes).ok_or(InvalidText::NotALeaseId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_id_is_22_characters_and_comes_back() {
        let lease_id = LeaseId::from_bytes([0xfb; 16]);
        let text = lease_id_text(&lease_id);
        assert_eq!((text.len(), text.as_str()), (22, "-_v7-_v7-_v7-_v7-_v7-w"));
        assert_eq!(parse_lease_id(&text), Ok(lease_id));
    }

    #[test]
    fn anything_else_is_refused() {
        let texts =
            ["", "-_v7", "-_v7-_v7-_v7-_v7-_v7-w==", "-_v7-_v7-_v7-_v7-_v7-x", "+/v7+/v7+/v7+/v7+/v7+w"];
        for text in texts {
            assert_eq!(parse_lease_id(text), Err(InvalidText::NotALeaseId), "{text}");
        }
    }
}
