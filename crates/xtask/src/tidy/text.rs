//! What no text file may have: paths of one machine, and work left over without an issue.
//!
//! Owns: the two, in every language. Never: spelling or layout.

use super::Finding;
use super::source::Source;
use crate::repo::TextFile;

/// Folders that only one machine has. Split in two, so that this file passes its own rule.
const MACHINE_FOLDERS: [&str; 3] = [concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/")];

/// Marks of unfinished work.
const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

pub(super) fn findings(file: &TextFile) -> Vec<Finding> {
    let finding = |line: usize, text: String| Finding { path: file.path.clone(), line, text };
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| has_path(line, folder)) {
            findings.push(finding(
                index + 1,
                format!("a path under {folder} is one machine's: make it relative"),
            ));
        }
    }
    if file.path.ends_with(".md") {
        return findings; // Prose may speak of the marks.
    }
    let is_rust = file.path.ends_with(".rs");
    let marked = if is_rust { Source::of(&file.text).comments } else { file.text.clone() };
    for (index, line) in marked.lines().enumerate() {
        if let Some(mark) = MARKS.iter().find(|mark| has_unnumbered(line, mark)) {
            findings.push(finding(
                index + 1,
                format!("{mark} without an issue: file one and write `{mark}(#12)`"),
            ));
        }
    }
    findings
}

/// Whether an absolute path begins with `folder` in this line.
fn has_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || "._-/})*~".contains(c)))
    })
}

/// Whether `mark` stands as a word without an issue's number behind it.
fn has_unnumbered(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + mark.len()..]);
        let is_word_char = |c: char| c.is_alphanumeric() || c == '_';
        let is_word = !before.ends_with(is_word_char) && !after.starts_with(is_word_char);
        let number = after.strip_prefix("(#").map_or("", |rest| rest.split(')').next().unwrap_or(""));
        is_word && (number.is_empty() || number.parse::<u32>().is_err())
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn a_path_of_one_machine_is_found_in_any_file() {
        let line = format!("see `{}main/x`", MACHINE_FOLDERS[0]);

        assert_eq!(check("docs/a.md", &line).len(), 1);
        assert_eq!(check("a.toml", &format!("x = \"{}y\"", MACHINE_FOLDERS[1])).len(), 1);
    }

    #[test]
    fn the_same_words_inside_another_path_pass() {
        let line = format!("docs{0}a.md https://example.org{0}x ${{dir}}{0}y", MACHINE_FOLDERS[0]);

        assert_eq!(check("docs/a.md", &line), [""; 0]);
    }

    #[test]
    fn unfinished_work_names_its_issue() {
        let mark = MARKS[0];
        assert!(check("a.toml", &format!("# {mark}: later"))[0].contains("without an issue"));
        assert_eq!(check("a.toml", &format!("# {mark}(#12): later")), [""; 0]);
        assert_eq!(
            check("crates/api/src/a.rs", &format!("//! Head.\nconst A: &str = \"{mark}\";\n")),
            [""; 0]
        );
    }
}
