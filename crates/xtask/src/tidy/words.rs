//! The field's words, once each.
//!
//! Owns: which words mislead, and which to use. Never: prose; only identifiers are read.

use super::source::Source;
use super::{Finding, is_in_crate};
use crate::repo::TextFile;

/// The crates whose names people meet.
const CRATES: [&str; 4] = ["types", "core", "api", "cli"];

/// Each word in all its forms, and what to say.
const WORDS: [(&[&str], &str); 6] = [
    (&["mutex", "mutexes"], "`resource` for what is locked, `lease` for holding it"),
    (&["locker", "lockers"], "`owner`, or `holder` while its lease is current"),
    (
        &["ticket", "tickets"],
        "`lease id` for the proof, `fencing token` for the number, `waiter` for the place",
    ),
    (&["master", "masters"], "`leader`"),
    (&["slave", "slaves"], "`follower`"),
    (&["refresh", "refreshes", "refreshed", "refreshing"], "`renew`"),
];

/// Not ours to name: they say which type of the standard library it is.
const NAMES_OF_STD: [&str; 2] = ["Mutex", "MutexGuard"];

pub(super) fn findings(file: &TextFile, source: &Source) -> Vec<Finding> {
    if !is_in_crate(&file.path, &CRATES) {
        return Vec::new();
    }
    let findings =
        source.identifiers().filter(|(_, name)| !NAMES_OF_STD.contains(name)).filter_map(|(line, name)| {
            let better = parts(name).iter().find_map(|part| better_than(part))?;
            Some(Finding {
                path: file.path.clone(),
                line,
                text: format!("`{name}` isn't our word: use {better}"),
            })
        });
    findings.collect()
}

fn better_than(word: &str) -> Option<&'static str> {
    WORDS.iter().find(|(forms, _)| forms.contains(&word)).map(|(_, better)| *better)
}

/// The words of `snake_case`, `CamelCase` and `SCREAMING_CASE`, in lower case.
fn parts(identifier: &str) -> Vec<String> {
    let chars: Vec<char> = identifier.chars().collect();
    let mut parts = vec![String::new()];
    for (at, c) in chars.iter().enumerate() {
        let follows_lower = at > 0 && !chars[at - 1].is_uppercase();
        let leads_lower = chars.get(at + 1).is_some_and(|next| next.is_lowercase());
        if *c == '_' || (c.is_uppercase() && (follows_lower || leads_lower)) {
            parts.push(String::new());
        }
        if let (true, Some(part)) = (*c != '_', parts.last_mut()) {
            part.extend(c.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn identifiers_split_into_words() {
        assert_eq!(parts("wait_ms_MAX"), ["wait", "ms", "max"]);
        assert_eq!(parts("HTTPServerError"), ["http", "server", "error"]);
        assert_eq!(parts("_WAIT_MS_MAX"), ["wait", "ms", "max"]);
    }

    #[test]
    fn a_misleading_word_is_found_in_any_case_with_the_word_to_use() {
        let text = "//! Head.\nfn refresh_lease(t: TicketId) {}\nconst IS_MASTER: u8 = 1;\n";

        let found = check("crates/cli/src/a.rs", text);

        assert_eq!(
            found[0],
            "2: `TicketId` isn't our word: use `lease id` for the proof, `fencing token` for the number, `waiter` for the place"
        );
        assert_eq!(found[1], "2: `refresh_lease` isn't our word: use `renew`");
        assert_eq!(found[2], "3: `IS_MASTER` isn't our word: use `leader`");
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn longer_words_prose_std_types_and_other_crates_pass() {
        let text = "//! Head.\nfn mastery() { let _ = \"refresh\"; } // ticket\nuse std::sync::Mutex;\n";
        assert_eq!(check("crates/cli/src/a.rs", text), [""; 0]);

        let text = "//! Head.\nfn refresh() {}\n";
        assert_eq!(check("crates/replica/src/a.rs", text), [""; 0]);
    }
}
