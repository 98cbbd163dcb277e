//! The pure crates stay pure where the compiler can't see to it.
//!
//! Owns: what `types` and `core` may not have. Never: dependencies; those are `cargo xtask layers`.

use super::source::Source;
use super::{Finding, is_in_crate};
use crate::repo::TextFile;

const CRATES: [&str; 2] = ["types", "core"];

/// What the root of each must say, and why.
const ATTRIBUTES: [(&str, &str); 2] = [
    ("#![no_std]", "it keeps out clocks, files, threads and sockets"),
    ("#![forbid(unsafe_code)]", "nothing here needs it"),
];

pub(super) fn findings(file: &TextFile, source: &Source) -> Vec<Finding> {
    let folder = file.path.split_once("/src/").map_or("", |(folder, _)| folder);
    if !is_in_crate(&file.path, &CRATES) || folder.is_empty() {
        return Vec::new();
    }
    let finding = |line: usize, text: String| Finding { path: file.path.clone(), line, text };
    let mut findings: Vec<_> = source
        .identifiers()
        .filter(|(_, word)| *word == "async")
        .map(|(line, _)| {
            finding(line, "`async` in a pure crate: data in, data out; whoever hosts it waits".to_owned())
        })
        .collect();
    if file.path == format!("{folder}/src/lib.rs") {
        let missing = ATTRIBUTES.iter().filter(|(attribute, _)| !source.code.contains(attribute));
        findings
            .extend(missing.map(|(attribute, why)| finding(1, format!("`{attribute}` is missing: {why}"))));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn async_in_the_core_is_found_and_elsewhere_passes() {
        let text = "//! Head.\nasync fn f() {}\n";

        assert_eq!(check("crates/core/src/a.rs", text).len(), 1);
        assert_eq!(check("crates/server/src/a.rs", text), [""; 0]);
    }

    #[test]
    fn the_root_of_a_pure_crate_says_no_std_and_forbids_unsafe() {
        let found = check("crates/types/src/lib.rs", "//! Head.\n#![no_std]\n");

        assert_eq!(found, ["1: `#![forbid(unsafe_code)]` is missing: nothing here needs it"]);
    }
}
