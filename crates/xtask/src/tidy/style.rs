//! How a Rust file opens, and what its tests are called.
//!
//! Owns: the two. Never: layout or idiom; those are rustfmt's and clippy's.

use super::Finding;
use super::source::Source;
use crate::repo::TextFile;

pub(super) fn findings(file: &TextFile, source: &Source) -> Vec<Finding> {
    let finding = |line: usize, text: String| Finding { path: file.path.clone(), line, text };
    let mut findings = Vec::new();
    if !file.text.starts_with("//! ") {
        findings.push(finding(
            1,
            "no header: begin with `//!`, what the file is, owns, and never does".to_owned(),
        ));
    }
    findings.extend(prefixed_tests(source).into_iter().map(|(line, name)| {
        finding(line, format!("test `{name}`: drop `test_` and name the rule that it defends"))
    }));
    findings
}

/// Functions marked as tests whose name only says so again.
fn prefixed_tests(source: &Source) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = source.code.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some((_, rest)) = line.split_once("fn test_") else { continue };
        let attributes = lines[..index].iter().rev().map(|line| line.trim());
        let mut attributes = attributes.take_while(|line| line.is_empty() || line.starts_with("#["));
        if attributes.any(|line| line.contains("test]") || line.contains("test(")) {
            let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let start = line.len() - rest.len() - "test_".len();
            found.push((index + 1, &line[start..start + "test_".len() + length]));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn a_file_without_a_header_is_found() {
        assert!(check("crates/api/src/a.rs", "use std::fmt;\n")[0].starts_with("1: no header"));
    }

    #[test]
    fn a_test_that_is_named_a_test_is_found_and_a_helper_passes() {
        let text = "//! Head.\n#[tokio::test]\n// why\nasync fn test_release() {}\nfn test_server() {}\n";

        let found = check("crates/api/src/a.rs", text);

        assert_eq!(found, ["4: test `test_release`: drop `test_` and name the rule that it defends"]);
    }
}
