//! Lease ids that begin with a dash.
//!
//! Owns: telling them from options. Never: checks one; the server does.

use std::ffi::OsString;

/// Characters of a lease id: 16 bytes in unpadded base64url.
const LEASE_ID_CHARS: usize = 22;

/// Marks a lease id that begins with a dash as one, since it would be read as options.
///
/// One in 64 lease ids begins so. No option of ours has 22 characters with its dashes, so none is mistaken.
pub(crate) fn with_plain_lease_ids(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = arguments.collect();
    if !matches!(all.get(1).and_then(|verb| verb.to_str()), Some("renew" | "release")) {
        return all;
    }
    for at in 2..all.len() {
        let (before, this) = (all[at - 1].to_str(), all[at].to_str());
        match this {
            Some("--") => break,
            Some(text) if !before.is_some_and(takes_any_value) && looks_like_dashed_lease_id(text) => {
                all[at] = format!("--lease={text}").into();
            }
            _ => {}
        }
    }
    all
}

/// Whether what comes after an option is its value whatever it looks like.
fn takes_any_value(option: &str) -> bool {
    matches!(option, "--lease" | "--owner")
}

fn looks_like_dashed_lease_id(text: &str) -> bool {
    let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text.len() == LEASE_ID_CHARS && text.starts_with('-') && text.bytes().all(is_base64url)
}
