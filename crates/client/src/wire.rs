//! What an answer means for whoever asked.
//!
//! Owns: which refusals pass by themselves, and how an answer reads to a person. Never: spells a line; that is
//! `kunci_api::native`.

use kunci_api::native::{Answer, Hello, Line, Outcome, Refused, Request, Tag, VERSION};
use kunci_api::{Applied, Code};
use std::time::Duration;

/// From one try to the next, where the server names no time.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// The same where the leader's process has ended: the members see that too, and need about so long to elect another.
pub(crate) const SUCCEEDED_AFTER: Duration = Duration::from_millis(50);

/// The first request on every connection.
pub(crate) fn hello() -> Request {
    Request::Hello(Hello { version: VERSION, token: None })
}

/// Appends a request as a line.
pub(crate) fn write(request: Request, tag: u64, out: &mut Vec<u8>) {
    Line { request, tag: Some(Tag::new(tag)) }.write(out);
}

/// Reads an answer and the tag of its request.
pub(crate) fn read(line: &[u8]) -> Result<(Option<u64>, Outcome), String> {
    let answer = Answer::parse(line).map_err(|bad| bad.to_string())?;
    Ok((answer.tag.map(Tag::get), answer.outcome))
}

/// A refusal that the same request may overcome in a moment, at this node or another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passing {
    pub(crate) code: Code,
    pub(crate) applied: Applied,
    pub(crate) after: Duration,
    pub(crate) detail: String,
}

impl Passing {
    /// The leader can't be followed to where it is.
    pub(crate) fn no_leader(detail: impl Into<String>) -> Self {
        Self { code: Code::NoLeader, applied: Applied::No, after: PAUSE, detail: detail.into() }
    }

    /// The leader's process has ended: the next one will be elected.
    pub(crate) fn leader_gone(detail: impl Into<String>) -> Self {
        Self { after: SUCCEEDED_AFTER, ..Self::no_leader(detail) }
    }

    /// Whether another node is to be asked: this one doesn't lead.
    pub(crate) fn is_no_leader(&self) -> bool {
        matches!(self.code, Code::NoLeader | Code::NoQuorum)
    }

    /// Reads it from an answer; `None` when the answer decides.
    pub(crate) fn read(outcome: &Outcome) -> Option<Self> {
        let Outcome::Error(refused) = outcome else { return None };
        let code = refused.code().filter(|code| code.status() == 503 || *code == Code::Superseded)?;
        let after = refused.retry_ms.map_or(PAUSE, Duration::from_millis);
        Some(Self { code, applied: refused.applied, after: after.min(PAUSE), detail: detail(refused) })
    }
}

/// A refusal in words.
pub(crate) fn detail(refused: &Refused) -> String {
    if refused.detail.is_empty() { refused.code.clone() } else { refused.detail.clone() }
}
