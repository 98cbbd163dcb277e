//! From the bytes of a body to its fields.
//!
//! Owns: that an unknown, missing, repeated or wrong field is refused by name. Never: what a field means.

use crate::invalid::Invalid;
use serde::de::DeserializeOwned;

/// Reads a JSON body.
///
/// # Errors
/// Names the field at fault where there is one. A field that nobody knows is never ignored: a misspelt
/// `leaseDurationMs` would otherwise give a lease of another length.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Invalid> {
    if bytes.is_empty() {
        return Err(Invalid::NoBody);
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let body = serde_path_to_error::deserialize(&mut json).map_err(|error| Invalid::Body {
        field: field(&error.path().to_string()),
        text: error.into_inner().to_string(),
    })?;
    json.end().map_err(|error| Invalid::Body { field: None, text: error.to_string() })?;
    Ok(body)
}

/// The path of the value at fault; `.` is the whole body, and `?` a place that the parser didn't name.
fn field(path: &str) -> Option<String> {
    (path != "." && !path.ends_with('?')).then(|| path.to_owned())
}
