//! Each crate's clippy.toml repeats the root's, and each crate takes the workspace's lints.
//!
//! Owns: that a crate can't drop a rule by having a file of its own. Never: which rules there are.

use super::Finding;
use crate::repo::TextFile;

const NAME: &str = "clippy.toml";

pub(super) fn findings(files: &[TextFile]) -> Vec<Finding> {
    let root = files.iter().find(|file| file.path == NAME).map_or("", |file| file.text.as_str());
    let settings: Vec<&str> = root.lines().map(str::trim).filter(|line| is_setting(line)).collect();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with("crates/")) {
        if file.path.ends_with("/clippy.toml") {
            let missing =
                settings.iter().filter(|setting| !file.text.lines().any(|line| line.trim() == **setting));
            findings.extend(
                missing.map(|setting| finding(file, format!("the root's `{setting}` isn't repeated here"))),
            );
        }
        if file.path.ends_with("/Cargo.toml") && !file.text.contains("[lints]\nworkspace = true") {
            findings.push(finding(
                file,
                "the workspace's lints aren't taken: add `[lints]` with `workspace = true`",
            ));
        }
    }
    findings
}

fn is_setting(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

fn finding(file: &TextFile, text: impl Into<String>) -> Finding {
    Finding { path: file.path.clone(), line: 1, text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_drops_a_rule_is_found() {
        let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
        let files = [
            file("clippy.toml", "# why\nlimit = 70\nbans = [\n    { path = \"a\" },\n]\n"),
            file("crates/core/clippy.toml", "bans = [\n    { path = \"a\" },\n    { path = \"b\" },\n]\n"),
            file("crates/core/Cargo.toml", "[package]\n"),
        ];

        let found: Vec<_> = findings(&files).into_iter().map(|finding| finding.text).collect();

        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0], "the root's `limit = 70` isn't repeated here");
        assert!(found[1].starts_with("the workspace's lints"));
    }
}
