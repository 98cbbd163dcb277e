//! Where output goes: data to standard output, talk to standard error.
//!
//! Owns: the two writers, `--json`, closed pipes. Never: decides what is said.

use crate::exit::{Exit, Failure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use serde_json::Value;
use std::io::{self, ErrorKind, Write as _};

/// Whether output is for people or for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Aligned text.
    Human,
    /// The server's JSON, one document a line.
    Json,
}

/// Both writers.
#[derive(Debug)]
pub(crate) struct Output {
    form: Form,
}

impl Output {
    /// Writes in this form.
    pub(crate) fn new(form: Form) -> Self {
        Self { form }
    }

    /// The form.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Writes an answer: the body itself under `--json`, else what `human` makes of it.
    pub(crate) fn answer(&self, body: &Value, human: impl FnOnce(&Value) -> String) -> Result<(), Failure> {
        match self.form {
            Form::Human => self.line(&human(body)),
            Form::Json => self.line(&body.to_string()),
        }
    }

    /// Writes text and a line break to standard output, at once.
    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        self.bytes(format!("{}\n", text.trim_end_matches('\n')).as_bytes())
    }

    /// Writes bytes to standard output, at once.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Failure::closed_pipe(),
            _ => Failure::new(
                Exit::Refused,
                format!("write to standard output: {error}; free some space there"),
            ),
        })
    }

    /// Says something to the person, if it can be said without waiting: whoever doesn't read standard error
    /// mustn't keep `exec` from ending its command in time.
    pub(crate) fn say(&self, text: &str) {
        let stderr = io::stderr();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
        let is_writable = poll(&mut ready, Some(&at_once)).is_ok()
            && ready.iter().any(|stderr| stderr.revents().contains(PollFlags::OUT));
        if is_writable {
            self.insist(text);
        }
    }

    /// Says something to the person, waiting until it can be said.
    fn insist(&self, text: &str) {
        // When standard error is gone there is nobody left to tell.
        let _ = io::stderr().lock().write_all(format!("kunci: {text}\n").as_bytes());
    }

    /// Says why the run failed; under `--json` its body goes to standard output too.
    pub(crate) fn report(&self, failure: &Failure) {
        if failure.text.is_empty() {
            return;
        }
        if self.form == Form::Json && !failure.body.is_null() {
            let _ = self.line(&failure.body.to_string());
        }
        self.insist(&failure.text);
    }
}

/// Lays out `rows` under `heads` in aligned columns.
pub(crate) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(heads.get(column).map(|head| head.chars().count())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let heads = heads.iter().map(|head| (*head).to_owned()).collect();
    let lines = std::iter::once(&heads).chain(rows).map(|row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Lays out a title and, below it, one named value a line; what isn't there is left out.
pub(crate) fn card(title: &str, fields: &[(&str, Option<String>)]) -> String {
    let there = || fields.iter().filter_map(|(name, value)| value.as_ref().map(|value| (name, value)));
    let width = there().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = title.to_owned();
    for (name, value) in there() {
        text.push_str(&format!("\n  {name:width$}  {value}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_no_line_ends_in_spaces() {
        let rows = vec![vec!["1".to_owned(), "worker-7".to_owned()], vec!["10".to_owned(), "b".to_owned()]];
        assert_eq!(table(&["#", "OWNER"], &rows), "#   OWNER\n1   worker-7\n10  b");
    }

    #[test]
    fn a_card_leaves_out_what_is_not_there() {
        let fields =
            [("token", Some("7".to_owned())), ("metadata", None), ("ends in", Some("3s".to_owned()))];
        assert_eq!(card("held", &fields), "held\n  token    7\n  ends in  3s");
    }
}
