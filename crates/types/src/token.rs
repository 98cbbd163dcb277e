//! The number that orders everything: revision, and the fencing token that is one.

use core::fmt;

/// How many ownership and queue events there have been in the cluster's life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(u64);

impl Revision {
    /// Before the first event.
    pub const ZERO: Self = Self(0);
    /// The largest: 2^53 − 1, so that JSON and JavaScript carry it exactly.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// Takes a revision from outside; `None` beyond [`Revision::MAX`].
    pub const fn new(number: u64) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The next one; `None` at the end of the range.
    pub const fn next(self) -> Option<Self> {
        Self::new(self.0 + 1)
    }

    /// The token of a grant that is this revision's event; only a grant may ask.
    pub const fn token(self) -> FencingToken {
        FencingToken(self.0)
    }
}

/// Proof of how recent a grant is: larger is newer, across all resources and for the cluster's whole life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

/// A number that can't be a fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fencing token {number} is out of range: expected 1 to 9007199254740991")]
pub struct InvalidToken {
    /// What was given.
    pub number: u64,
}

impl FencingToken {
    /// Takes a token that a caller presents, to compare it.
    pub const fn presented(number: u64) -> Result<Self, InvalidToken> {
        if number == 0 || number > Revision::MAX.0 {
            return Err(InvalidToken { number });
        }
        Ok(Self(number))
    }

    /// The number: 1 to 2^53 − 1.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The revision of the grant that minted it.
    pub const fn revision(self) -> Revision {
        Revision(self.0)
    }
}

macro_rules! shown_as_number {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )*};
}
shown_as_number!(Revision, FencingToken);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stay_where_javascript_is_exact() {
        assert!(FencingToken::presented(0).is_err());
        assert!(FencingToken::presented((1 << 53) - 1).is_ok());
        assert!(FencingToken::presented(1 << 53).is_err());
        assert_eq!(Revision::MAX.next(), None);
    }
}
