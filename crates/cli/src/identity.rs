//! Who this run says it is.
//!
//! Owns: the owner and the request id that are used when none is given. Never: takes either for proof.

use crate::exit::{Exit, Failure};

/// `host-pid`: tells a person which process holds the lock.
pub(crate) fn default_owner() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host: String = host.chars().filter(char::is_ascii_graphic).take(100).collect();
    let host = if host.is_empty() { "unnamed".to_owned() } else { host };
    format!("{host}-{}", std::process::id())
}

/// 128 fresh random bits: an id is never used for a second request, not even after a fork.
pub(crate) fn new_request_id() -> Result<String, Failure> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).map_err(|error| {
        Failure::new(Exit::Unavailable, format!("draw a request id: {error}; name one with --request-id"))
    })?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_request_ids_are_alike() {
        let (one, other) = (new_request_id().unwrap(), new_request_id().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 32);
    }

    #[test]
    fn an_owner_names_the_process() {
        assert!(default_owner().ends_with(&format!("-{}", std::process::id())));
    }
}
