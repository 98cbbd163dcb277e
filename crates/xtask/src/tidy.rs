//! What neither rustfmt nor clippy knows.
//!
//! Owns: which files each rule looks at, and how a finding reads. Never: a rule; each has a file under `tidy/`.

mod clippy_files;
mod pure;
mod size;
mod source;
mod style;
mod text;
mod words;

use crate::repo::{Repo, TextFile};
use anyhow::bail;
use source::Source;
use std::fmt;

/// One place that a rule is unhappy with, and what to do there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// Reads every text file and fails with every finding.
pub(crate) fn run(repo: &Repo) -> anyhow::Result<()> {
    let files = repo.text_files()?;
    for file in files.iter().filter(|file| is_rust(file)) {
        if let Some(advice) = size::advice(file) {
            println!("{advice} (advice, no fault)");
        }
    }
    let findings = findings(&files);
    if findings.is_empty() {
        println!("tidy: {} files are as they should be", files.len());
        return Ok(());
    }
    findings.iter().for_each(|finding| println!("{finding}"));
    bail!("findings: {}", findings.len());
}

fn findings(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = clippy_files::findings(files);
    for file in files {
        findings.extend(text::findings(file));
        if is_rust(file) {
            let source = Source::of(&file.text);
            findings.extend(words::findings(file, &source));
            findings.extend(pure::findings(file, &source));
            findings.extend(style::findings(file, &source));
            findings.extend(size::findings(file));
        }
    }
    findings.sort();
    findings
}

fn is_rust(file: &TextFile) -> bool {
    file.path.ends_with(".rs")
}

/// Whether `path` is in the sources or tests of one of these crates, named by folder.
fn is_in_crate(path: &str, crates: &[&str]) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates") && parts.next().is_some_and(|folder| crates.contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What tidy says of one file, without the path.
    pub(super) fn check(path: &str, text: &str) -> Vec<String> {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        let findings = findings(&[file]);
        findings.iter().map(|finding| format!("{}: {}", finding.line, finding.text)).collect()
    }

    #[test]
    fn this_repository_is_read_whole() {
        let files = Repo::find().unwrap().text_files().unwrap();
        for expected in ["Cargo.toml", ".cargo/config.toml", "crates/xtask/src/tidy.rs"] {
            assert!(files.iter().any(|file| file.path == expected), "{expected} wasn't read");
        }
        assert!(!files.iter().any(|file| file.path.starts_with("target/")));
    }

    #[test]
    fn a_finding_reads_as_a_place_and_what_to_do() {
        let finding = Finding { path: "a.rs".to_owned(), line: 7, text: "found x: use y".to_owned() };
        assert_eq!(finding.to_string(), "a.rs:7: found x: use y");
    }
}
