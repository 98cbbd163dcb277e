//! How a run ends.
//!
//! Owns: what each exit code means, and the form of a failure. Never: prints.

use crate::answer::Answer;
use serde_json::Value;

/// The code of a run that did what it was asked.
pub(crate) const DONE: u8 = 0;
/// The code of a command line that can't be understood.
pub(crate) const USAGE: u8 = 2;

/// What every verb but `exec` says about its codes in `--help`.
pub(crate) const CODES: &str = "\
Exit codes:
   0  done
   1  refused: the server's answer says why
   2  usage: an argument can't be used as given
   3  outcome unknown: sent, and no answer came; repeat the same command to find out
  69  no quorum, or no node reachable: nothing was applied, try again";

/// How a run ends. `exec` has codes of its own beside these; its help lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked is so. Also: whoever read the output has closed it.
    Done,
    /// The server refused.
    Refused,
    /// The arguments can't be used.
    Usage,
    /// Sent, and not answered.
    Unknown,
    /// No quorum or no node; nothing was applied.
    Unavailable,
    /// `server`: the node ended by itself.
    Fatal,
    /// `exec`: somebody else had the lock.
    Busy,
    /// `exec`: the lock was lost while the command ran.
    Lost,
    /// `exec`: refused for another reason than a busy lock.
    NotAllowed,
    /// `exec`: the command is there and can't be run.
    NotExecutable,
    /// `exec`: the command isn't there.
    NotFound,
    /// `exec`: the command's own code.
    Child(u8),
    /// `exec`: ended by this signal, the command or the wait for the lock.
    Signal(i32),
}

impl Exit {
    /// The code that the process ends with.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => DONE,
            Self::Refused => 1,
            Self::Usage => USAGE,
            Self::Unknown => 3,
            Self::Unavailable => 69,
            Self::Fatal => 70,
            Self::Busy => 75,
            Self::Lost => 76,
            Self::NotAllowed => 77,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Child(code) => code,
            Self::Signal(number) => u8::try_from(number).map_or(u8::MAX, |number| number.saturating_add(128)),
        }
    }
}

/// Why a run didn't do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Failure {
    /// The code to end with.
    pub(crate) exit: Exit,
    /// For the person: what was found, and what fixes it.
    pub(crate) text: String,
    /// For `--json`: the server's body, or the same in its form.
    pub(crate) body: Value,
}

impl Failure {
    /// A failure that no server told of; `code` and `applied` are those that a server would use.
    pub(crate) fn new(exit: Exit, text: impl Into<String>) -> Self {
        let text = text.into();
        let (code, applied) = match exit {
            Exit::Unknown => ("outcome_unknown", "unknown"),
            Exit::Unavailable => ("unreachable", "no"),
            Exit::Usage => ("usage", "no"),
            _ => ("refused", "no"),
        };
        let body = serde_json::json!({ "code": code, "detail": text, "applied": applied });
        Self { exit, text, body }
    }

    /// The arguments can't be used.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(Exit::Usage, text)
    }

    /// Whoever read standard output has gone: success.
    pub(crate) fn closed_pipe() -> Self {
        Self { exit: Exit::Done, text: String::new(), body: Value::Null }
    }

    /// Standard output has said it all: under `--json` nothing follows.
    pub(crate) fn without_body(self) -> Self {
        Self { body: Value::Null, ..self }
    }

    /// The server's refusal.
    pub(crate) fn refusal(answer: &Answer) -> Self {
        Self { exit: answer.exit(), text: answer.refusal_text(), body: answer.body.clone() }
    }
}
