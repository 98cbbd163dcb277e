//! One call: who asked which node what, when, and what came back.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// A place in the order that histories are checked against: log index, and the place in that entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The index in the log.
    pub index: u64,
    /// The place in that entry, from 0.
    pub place: u32,
}

impl Position {
    /// Reads `12.3`.
    pub fn parse(text: &str) -> Option<Self> {
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
pub enum Op {
    /// Take it, or wait for it; `wait_ms` of 0 is a try. `delay_ms` is the lock-delay.
    #[expect(missing_docs, reason = "the contract's words")]
    Acquire { resource: String, owner: String, request: String, ttl_ms: u64, wait_ms: u64, delay_ms: u64 },
    /// Renew a lease.
    #[expect(missing_docs, reason = "the contract's words")]
    Renew { resource: String, lease: String },
    /// Release a lease.
    #[expect(missing_docs, reason = "the contract's words")]
    Release { resource: String, lease: String },
    /// Wait no more.
    #[expect(missing_docs, reason = "the contract's words")]
    Cancel { resource: String, owner: String, request: String },
    /// Who holds it?
    #[expect(missing_docs, reason = "the contract's words")]
    Status { resource: String },
    /// Who waits for it?
    #[expect(missing_docs, reason = "the contract's words")]
    Queue { resource: String },
    /// What is there?
    #[expect(missing_docs, reason = "the contract's words")]
    List { prefix: String },
    /// What is allowed?
    Policy,
    /// Allow something else, in place of the policy of revision `replaces`.
    #[expect(missing_docs, reason = "the contract's words")]
    ChangePolicy { replaces: u64, policy: Value },
}

impl Op {
    /// The resource that it is about; a list is about many, a policy about all.
    pub fn resource(&self) -> Option<&str> {
        match self {
            Self::Acquire { resource, .. }
            | Self::Renew { resource, .. }
            | Self::Release { resource, .. }
            | Self::Cancel { resource, .. }
            | Self::Status { resource }
            | Self::Queue { resource } => Some(resource),
            Self::List { .. } | Self::Policy | Self::ChangePolicy { .. } => None,
        }
    }

    /// Whether it can only look.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Status { .. } | Self::Queue { .. } | Self::List { .. } | Self::Policy)
    }
}

/// An answer as it came.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// HTTP's, or what a refusal of the native door has as its status.
    pub status: u16,
    /// `Kunci-Position`.
    pub position: Option<Position>,
    /// `Kunci-Leader`.
    pub leader: Option<String>,
    /// The body, in the words of the HTTP door.
    pub body: Value,
}

impl Answer {
    /// The stable code of a refusal.
    pub fn code(&self) -> Option<&str> {
        self.body["code"].as_str()
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It was answered.
    Answer(Answer),
    /// It never left this client: no connection.
    NotSent(String),
    /// It was sent, and no answer came.
    Unknown(String),
}

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Call {
    /// Its place in the history.
    pub number: u64,
    /// One client has one call at a time.
    pub client: u64,
    /// The node that was asked, from 1.
    pub node: usize,
    /// When it began, on the one clock of the history.
    pub began_us: u64,
    /// When it ended, on the same clock.
    pub ended_us: u64,
    /// What was asked.
    #[serde(flatten)]
    pub op: Op,
    /// How it ended.
    pub outcome: Outcome,
}

impl Call {
    /// The answer, if there was one.
    pub fn answer(&self) -> Option<&Answer> {
        match &self.outcome {
            Outcome::Answer(answer) => Some(answer),
            Outcome::NotSent(_) | Outcome::Unknown(_) => None,
        }
    }

    /// Whether it can have taken effect. A refusal that says `applied: no` didn't; silence may have.
    pub fn may_have_applied(&self) -> bool {
        match &self.outcome {
            Outcome::Answer(answer) => answer.body["applied"] != "no",
            Outcome::Unknown(_) => true,
            Outcome::NotSent(_) => false,
        }
    }
}
