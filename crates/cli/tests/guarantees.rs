//! docs/guarantees.md, docs/time.md and docs/clients.md name tests that exist.

#![expect(clippy::panic, reason = "a test that can't go on should fail on the spot")]

use std::path::Path;

/// The links of a page to tests: the name and the file, as ``[`name`](../file.rs)``.
fn named_tests(page: &str) -> Vec<(&str, &str)> {
    let links = page.split("[`").skip(1).filter_map(|link| {
        let (name, rest) = link.split_once("`](")?;
        let (file, _) = rest.split_once(')')?;
        file.ends_with(".rs").then_some((name, file))
    });
    links.collect()
}

#[test]
fn every_test_that_the_pages_name_is_a_test() {
    check(include_str!("../../../docs/guarantees.md"), 60);
    check(include_str!("../../../docs/time.md"), 10);
    check(include_str!("../../../docs/clients.md"), 30);
}

fn check(page: &str, named_min: usize) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let named = named_tests(page);

    assert!(named.len() > named_min, "only {} tests are named", named.len());
    for (name, file) in named {
        let text = std::fs::read_to_string(docs.join(file)).unwrap_or_default();
        let at = text.find(&format!("fn {name}(")).unwrap_or_else(|| panic!("{file} has no test {name}"));
        let before: Vec<_> = text[..at].lines().rev().take(6).collect();
        assert!(before.iter().any(|line| line.contains("test]") || line.contains("test(")), "{file}: {name}");
    }
}

#[test]
fn every_guarantee_of_the_contract_has_its_place() {
    let page = include_str!("../../../docs/guarantees.md");
    for id in ["S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "L1", "L2", "L3", "L4"] {
        assert_eq!(page.matches(&format!("\n### {id} ")).count(), 1, "{id}");
    }
}
