//! Why a line can't be read.

use super::request::{Op, Subject, Tag};
use kunci_types::{InvalidText, InvalidToken};

/// A request line that can't be read, and what of it can: an answer to it echoes that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct BadLine {
    /// The operation and key, when both could be read.
    pub subject: Option<Subject>,
    /// The tag, when it could be read.
    pub tag: Option<Tag>,
    /// What is wrong.
    pub why: LineFault,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// Too many bytes before the end of the line.
    #[error("the line is too long: expected at most 4096 bytes before its end")]
    TooLong,
    /// Nothing between two line ends.
    #[error("the line is empty: expected a request such as `A orders/42 30 60`")]
    Empty,
    /// Bytes that are no text.
    #[error("the line isn't UTF-8: percent-encode what is no text")]
    NotUtf8,
    /// A letter that is no operation.
    #[error("the line begins with no operation: expected one of A, N, R, C, Q, H, P and a space")]
    UnknownOp,
    /// The head of an HTTP request.
    #[error("this is the native protocol, not HTTP: that has a port of its own")]
    Http,
    /// The line ended too early.
    #[error("{field} is missing: expected `{}`", .op.form())]
    Missing {
        /// The operation.
        op: Op,
        /// What should have come.
        field: &'static str,
    },
    /// Something that has no place in this request.
    #[error("unknown field: expected `{}`, one space between fields, and the tag last", .op.form())]
    Unknown {
        /// The operation.
        op: Op,
    },
    /// A named field that was there before.
    #[error("{field} is there twice: expected it once at most")]
    Twice {
        /// Its name.
        field: &'static str,
    },
    /// A field isn't percent-encoded as it should be.
    #[error("{field}: {cause}")]
    Coding {
        /// The field.
        field: &'static str,
        /// What is wrong.
        cause: CodingFault,
    },
    /// No number of seconds.
    #[error(
        "{field} isn't a number of seconds: expected digits with at most three decimals, such as 30 or 0.5"
    )]
    Seconds {
        /// The field.
        field: &'static str,
    },
    /// No whole number.
    #[error("{field} isn't a whole number: expected digits without leading zeros")]
    Number {
        /// The field.
        field: &'static str,
    },
    /// A text that breaks the rules of names.
    #[error("{field}: {cause}")]
    Text {
        /// The field.
        field: &'static str,
        /// What is wrong with it, and at which byte.
        cause: InvalidText,
    },
    /// A number that is no token.
    #[error("{field}: {cause}")]
    Token {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        cause: InvalidToken,
    },
}

/// What is wrong with the coding of a field; bytes count from 0, in the field as it came.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodingFault {
    /// A `%` that isn't followed by two hexadecimal digits.
    #[error("expected two hexadecimal digits after the % at byte {at}")]
    Percent {
        /// Where.
        at: usize,
    },
    /// A byte that stands for something else.
    #[error("the byte at {at} has to be percent-encoded here")]
    Reserved {
        /// Where.
        at: usize,
    },
    /// The decoded bytes are no text.
    #[error("its decoded bytes aren't UTF-8")]
    NotUtf8,
}

impl LineFault {
    /// Whether the line itself is broken, and not just a value in it: a client that sends many such lines doesn't
    /// speak this protocol.
    pub fn breaks_grammar(&self) -> bool {
        !matches!(self, Self::Text { .. } | Self::Token { .. })
    }

    /// Whether nothing more from this peer may be taken. A web page can make a browser send HTTP with a body of any lines to
    /// any port, so nothing of what comes behind such a head is a request.
    pub fn ends_connection(&self) -> bool {
        matches!(self, Self::Http)
    }

    /// The field at fault, by its name in the grammar.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Self::TooLong
            | Self::Empty
            | Self::NotUtf8
            | Self::UnknownOp
            | Self::Http
            | Self::Unknown { .. } => None,
            Self::Missing { field, .. }
            | Self::Twice { field }
            | Self::Coding { field, .. }
            | Self::Seconds { field }
            | Self::Number { field }
            | Self::Text { field, .. }
            | Self::Token { field, .. } => Some(field),
        }
    }
}
