//! Why a request can't be read.

use kunci_types::{InvalidText, InvalidToken};

/// Why a request can't be read: it is malformed whatever the policy says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A body was expected.
    #[error("the body is empty: expected a JSON object")]
    NoBody,
    /// The body isn't the JSON that was expected.
    #[error("{}{text}", .field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default())]
    Body {
        /// The field at fault, where there is one.
        field: Option<String>,
        /// What was found and what was expected.
        text: String,
    },
    /// A text breaks the rules of names.
    #[error("{field}: {cause}")]
    Text {
        /// The field at fault.
        field: String,
        /// What is wrong with it, and at which byte.
        cause: InvalidText,
    },
    /// A number is out of its range.
    #[error("{field}: {cause}")]
    Token {
        /// The field at fault.
        field: String,
        /// What is wrong with it.
        cause: InvalidToken,
    },
    /// A value is not one of those that are possible.
    #[error("{field}: {text}")]
    Value {
        /// The field or parameter at fault.
        field: String,
        /// What was found and what was expected.
        text: String,
    },
    /// Neither a lease id nor owner and token, or both.
    #[error("expected either leaseId, or clientId and fencingToken together")]
    Proof,
}

impl Invalid {
    /// The field at fault, as in the body; `resource` for the path.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::NoBody | Self::Proof => None,
            Self::Body { field, .. } => field.as_deref(),
            Self::Text { field, .. } | Self::Token { field, .. } | Self::Value { field, .. } => Some(field),
        }
    }

    /// The byte of the field at which the fault is, from 0.
    pub fn at(&self) -> Option<u64> {
        let Self::Text { cause, .. } = self else { return None };
        match cause {
            InvalidText::Control { at, .. }
            | InvalidText::EdgeSpace { at, .. }
            | InvalidText::NotNfc { at, .. } => u64::try_from(*at).ok(),
            InvalidText::TooLong { max, .. } => u64::try_from(*max).ok(),
            InvalidText::Empty { .. } | InvalidText::NotALeaseId => None,
        }
    }

    /// The same fault inside a larger body, such as `leases[3].resource`.
    #[must_use]
    pub(crate) fn inside(self, outer: &str) -> Self {
        let inside = |field: String| format!("{outer}.{field}");
        match self {
            Self::Text { field, cause } => Self::Text { field: inside(field), cause },
            Self::Token { field, cause } => Self::Token { field: inside(field), cause },
            Self::Value { field, text } => Self::Value { field: inside(field), text },
            Self::NoBody | Self::Body { .. } | Self::Proof => self,
        }
    }
}
