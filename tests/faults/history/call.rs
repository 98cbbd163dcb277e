//! One call: who asked which node what, when, and what came back.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// A place in the order that histories are checked against: log index, and the place in that entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) index: u64,
    pub(crate) place: u32,
}

impl Position {
    /// Reads `12.3`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (index, place) = text.split_once('.')?;
        Some(Self { index: index.parse().ok()?, place: place.parse().ok()? })
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.index, self.place)
    }
}

impl Serialize for Position {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Op {
    Acquire { resource: String, owner: String, request: String, ttl_ms: u64, wait_ms: u64, delay_ms: u64 },
    Renew { resource: String, lease: String },
    Release { resource: String, lease: String },
    Cancel { resource: String, owner: String, request: String },
    Status { resource: String },
    Queue { resource: String },
    List { prefix: String },
}

impl Op {
    /// The resource that it is about; a list is about many.
    pub(crate) fn resource(&self) -> Option<&str> {
        match self {
            Self::Acquire { resource, .. }
            | Self::Renew { resource, .. }
            | Self::Release { resource, .. }
            | Self::Cancel { resource, .. }
            | Self::Status { resource }
            | Self::Queue { resource } => Some(resource),
            Self::List { .. } => None,
        }
    }

    /// Whether it can only look.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self, Self::Status { .. } | Self::Queue { .. } | Self::List { .. })
    }
}

/// An answer as it came.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// `Kunci-Position`.
    pub(crate) position: Option<Position>,
    /// `Kunci-Leader`.
    pub(crate) leader: Option<String>,
    pub(crate) body: Value,
}

impl Answer {
    /// The stable code of a refusal.
    pub(crate) fn code(&self) -> Option<&str> {
        self.body["code"].as_str()
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Outcome {
    Answer(Answer),
    /// It never left this client: no connection.
    NotSent(String),
    /// It was sent, and no answer came.
    Unknown(String),
}

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Call {
    pub(crate) number: u64,
    /// One client has one call at a time.
    pub(crate) client: u64,
    /// The node that was asked, from 1.
    pub(crate) node: usize,
    pub(crate) began_us: u64,
    pub(crate) ended_us: u64,
    #[serde(flatten)]
    pub(crate) op: Op,
    pub(crate) outcome: Outcome,
}

impl Call {
    /// The answer, if there was one.
    pub(crate) fn answer(&self) -> Option<&Answer> {
        match &self.outcome {
            Outcome::Answer(answer) => Some(answer),
            Outcome::NotSent(_) | Outcome::Unknown(_) => None,
        }
    }

    /// Whether it can have taken effect. A refusal that says `applied: no` didn't; silence may have.
    pub(crate) fn may_have_applied(&self) -> bool {
        match &self.outcome {
            Outcome::Answer(answer) => answer.body["applied"] != "no",
            Outcome::Unknown(_) => true,
            Outcome::NotSent(_) => false,
        }
    }
}
