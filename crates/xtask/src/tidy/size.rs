//! Files that can be read in one go.
//!
//! Owns: how long a file may be without its tests. Never: functions; clippy counts those.

use super::Finding;
use super::source::Source;
use crate::repo::TextFile;

/// Over this, splitting is advised.
const LINES_ADVISED: usize = 400;
/// Over this, it is a fault.
const LINES_MAX: usize = 600;

/// The finding for a file that is too long.
pub(super) fn findings(file: &TextFile) -> Option<Finding> {
    let lines = lines_without_tests(file);
    (lines > LINES_MAX).then(|| finding(file, lines, LINES_MAX))
}

/// What to say of a file that is getting long.
pub(super) fn advice(file: &TextFile) -> Option<Finding> {
    let lines = lines_without_tests(file);
    (lines > LINES_ADVISED && lines <= LINES_MAX).then(|| finding(file, lines, LINES_ADVISED))
}

fn finding(file: &TextFile, lines: usize, most: usize) -> Finding {
    let text = format!("{lines} lines without tests, expected at most {most}: split it by what it owns");
    Finding { path: file.path.clone(), line: 1, text }
}

fn lines_without_tests(file: &TextFile) -> usize {
    let is_test = |part: &str| matches!(part, "tests" | "benches" | "tests.rs");
    if file.path.split('/').any(is_test) || file.path.ends_with("_tests.rs") {
        return 0;
    }
    Source::of(&file.text).test_lines().iter().filter(|is_test| !**is_test).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: usize, test_lines: usize) -> TextFile {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// t\n".repeat(test_lines));
        TextFile { path: path.to_owned(), text: "// c\n".repeat(lines) + &tests }
    }

    #[test]
    fn only_lines_without_tests_count() {
        let long = file("crates/a/src/b.rs", 601, 900);
        assert!(findings(&long).is_some_and(|finding| finding.text.starts_with("601 lines")));
        assert!(advice(&long).is_none());

        let getting_long = file("crates/a/src/b.rs", 600, 900);
        assert!(findings(&getting_long).is_none());
        assert!(advice(&getting_long).is_some());
    }

    #[test]
    fn files_of_tests_may_be_long() {
        for path in ["crates/a/tests/b.rs", "crates/a/src/tests.rs", "crates/a/src/tests/b.rs"] {
            assert!(findings(&file(path, 700, 0)).is_none(), "{path}");
        }
    }
}
