//! `--fence-postgres`: the token, to whatever connects to PostgreSQL by libpq or as libpq does.
//!
//! Owns: the text of `PGOPTIONS`. Never: a connection; the guard in the database compares.

use crate::exit::Failure;

/// What libpq hands to the server as its options.
pub(super) const VARIABLE: &str = "PGOPTIONS";

/// The options that are there.
pub(super) fn inherited() -> Result<String, Failure> {
    match std::env::var(VARIABLE) {
        Ok(existing) => Ok(existing),
        Err(std::env::VarError::NotPresent) => Ok(String::new()),
        Err(std::env::VarError::NotUnicode(_)) => Err(Failure::usage(format!(
            "{VARIABLE} isn't UTF-8, so nothing can be added to it; the lock wasn't asked for"
        ))),
    }
}

/// The options that were there, and after them ours: the last of a setting wins.
pub(super) fn options(existing: &str, resource: &str, token: u64) -> String {
    let ours = format!("-c kunci.token={token} -c kunci.resource={}", quoted(resource));
    let existing = unfinished_removed(existing);
    if existing.is_empty() { ours } else { format!("{existing} {ours}") }
}

/// The server splits options at white space, and takes what follows a backslash as it is; there are no other quotes.
fn quoted(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len());
    for character in value.chars() {
        if character == '\\' || character.is_ascii_whitespace() || character == '\u{b}' {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted
}

/// A last backslash that quotes nothing would quote the space that follows; alone, the server passes over it.
fn unfinished_removed(existing: &str) -> &str {
    let backslashes = existing.len() - existing.trim_end_matches('\\').len();
    if backslashes % 2 == 1 { &existing[..existing.len() - 1] } else { existing }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the server does it (`pg_split_opts`).
    fn split(options: &str) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut characters = options.chars().peekable();
        loop {
            while characters.next_if(|c| c.is_ascii_whitespace() || *c == '\u{b}').is_some() {}
            if characters.peek().is_none() {
                return arguments;
            }
            let mut argument = String::new();
            while let Some(c) = characters.next_if(|c| !(c.is_ascii_whitespace() || *c == '\u{b}')) {
                argument.extend(if c == '\\' { characters.next() } else { Some(c) });
            }
            arguments.push(argument);
        }
    }

    #[test]
    fn the_server_finds_the_resource_as_it_is_called() {
        for resource in [
            "orders/42",
            "a b",
            "a  b",
            r"a\b",
            r"a\",
            r"\\ \",
            "it's \"so\"",
            "a=b -c x=y",
            "é 日本 🔑",
            "$HOME",
        ] {
            let setting = format!("kunci.resource={resource}");
            assert_eq!(
                split(&options("", resource, 7)),
                ["-c", "kunci.token=7", "-c", &setting],
                "{resource}"
            );
        }
    }

    #[test]
    fn options_that_were_there_stay_and_come_first() {
        assert_eq!(options("-c a=b", "r", 7), "-c a=b -c kunci.token=7 -c kunci.resource=r");
        for (existing, expected) in
            [(r"-c a=b\", "a=b"), (r"-c a=b\\", r"a=b\"), (r"-c a=b\\\", r"a=b\"), ("-c a=b ", "a=b")]
        {
            let found = split(&options(existing, "r", 7));
            assert_eq!(
                found,
                ["-c", expected, "-c", "kunci.token=7", "-c", "kunci.resource=r"],
                "{existing}"
            );
        }
    }
}
