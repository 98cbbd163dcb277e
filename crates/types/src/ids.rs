//! Who asks, which request, which lease, which open call.

use crate::name::{InvalidText, check, shown_as_text};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// The client id that a caller chose (`worker-7`): for people to read, never proof. 1 to 128 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(Arc<str>);

/// The id a caller chose so that a retried acquire applies once. 1 to 128 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(Arc<str>);

/// Why an operator ended a lease by force; kept with the event. 1 to 256 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(Arc<str>);

macro_rules! short_text {
    ($name:ident, $what:literal, $bytes_max:literal) => {
        impl $name {
            /// The most bytes it may have.
            pub const BYTES_MAX: usize = $bytes_max;

            /// Takes it from outside, or says at which byte it is at fault.
            pub fn parse(text: &str) -> Result<Self, InvalidText> {
                check($what, text, Self::BYTES_MAX)?;
                Ok(Self(text.into()))
            }

            /// Takes back what was checked when it entered the log.
            pub fn from_log(text: &str) -> Self {
                Self(text.into())
            }

            /// The text as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    };
}
short_text!(Owner, "owner", 128);
short_text!(RequestId, "request id", 128);
short_text!(Reason, "reason", 256);
shown_as_text!(Owner, RequestId, Reason);

/// Whose request ids these are: the authenticated caller, or else the owner that was named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Caller {
    /// No authentication: the owner named in the request stands for the caller.
    Unproven(Owner),
    /// The name that authentication gave.
    Proven(Owner),
}

impl Caller {
    /// The name in either case.
    pub fn name(&self) -> &Owner {
        match self {
            Self::Unproven(name) | Self::Proven(name) => name,
        }
    }
}

/// The unguessable name of one lease and the only proof of ownership: 128 bits from the system's CSPRNG.
///
/// Never shown by status, lists, logs or metrics, so `Debug` doesn't show it either.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId([u8; 16]);

impl LeaseId {
    /// Wraps 16 bytes, which must come from a CSPRNG or from an earlier lease id.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseId(..)")
    }
}

/// One open call of a request. A request that is retried has a new attempt each time; 64 random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(u64);

impl Attempt {
    /// Wraps a number drawn by the node that opened the call.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_id_never_shows_in_debug_output() {
        let shown = alloc::format!("{:?}", LeaseId::from_bytes([0xab; 16]));
        assert!(!shown.contains("ab") && !shown.contains("171"), "{shown}");
    }

    #[test]
    fn owners_and_request_ids_have_128_bytes_at_most() {
        assert!(Owner::parse(&"o".repeat(128)).is_ok());
        assert!(RequestId::parse(&"r".repeat(129)).is_err());
    }
}
