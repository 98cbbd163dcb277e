//! Relative links in Markdown.
//!
//! Owns: what a link in a page is, and where it leads inside the repository. Never: reads a file or the network.

use std::collections::BTreeMap;

/// A link as it stands in a page.
struct Link<'a> {
    line: usize,
    target: &'a str,
}

/// Every link of `pages` (path to text) that leads to no file or no heading; `exists` knows the other files.
pub(crate) fn faults(pages: &BTreeMap<String, String>, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in pages {
        for link in links(text) {
            if let Some(fault) = fault(pages, &exists, path, link.target) {
                faults.push(format!("{path}:{}: {fault}", link.line));
            }
        }
    }
    faults
}

fn fault(
    pages: &BTreeMap<String, String>,
    exists: impl Fn(&str) -> bool,
    from: &str,
    target: &str,
) -> Option<String> {
    let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
    if is_elsewhere {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let Some(path) = (if file.is_empty() { Some(from.to_owned()) } else { resolve(from, file) }) else {
        return Some(format!("link `{target}` leads out of the repository: link inside it, or give a URL"));
    };
    if !pages.contains_key(&path) && !exists(&path) {
        return Some(format!("link `{target}` leads to {path}, which doesn't exist"));
    }
    let page = pages.get(&path)?;
    if anchor.is_empty() || headings(page).any(|heading| slug(heading) == anchor) {
        return None;
    }
    Some(format!("link `{target}`: {path} has no heading that gives #{anchor}"))
}

/// The path that `target` means in the page `from`; none when it leaves the root.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Inline links `[text](target)` and definitions `[name]: target`, outside code.
fn links(text: &str) -> impl Iterator<Item = Link<'_>> {
    prose(text).flat_map(|(line, prose)| {
        let definition =
            prose.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
        let inline = outside_code_spans(prose)
            .flat_map(|part| part.split("](").skip(1))
            .filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
        // A target may be followed by a title.
        inline
            .chain(definition)
            .filter_map(|target| target.split_whitespace().next())
            .map(move |target| Link { line, target })
    })
}

/// What stands outside `code`; a link's text may itself be code, so the halves of a link stay recognizable.
fn outside_code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').step_by(2)
}

/// The lines outside fenced code, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_fence = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_fence ^= is_fence;
        (!in_fence && !is_fence).then_some((index + 1, line))
    })
}

fn headings(text: &str) -> impl Iterator<Item = &str> {
    prose(text).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| line.trim_start_matches('#').trim())
}

/// The anchor that a heading gets: lower case, blanks as hyphens, no other punctuation.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_in(page: &str) -> Vec<String> {
        let pages = BTreeMap::from([
            ("docs/page.md".to_owned(), page.to_owned()),
            ("README.md".to_owned(), "# kunci\n\n## When *not* to use a lock\n".to_owned()),
        ]);
        faults(&pages, |path| path == "docs/openapi.json")
    }

    #[test]
    fn links_to_files_pages_and_headings_resolve() {
        let page = "# Own heading\n[a](openapi.json) [`b`](../README.md#when-not-to-use-a-lock)\n\
                    [c](#own-heading) [d](https://example.org/x)\n[e]: ../README.md \"title\"\n";

        assert_eq!(faults_in(page), [""; 0]);
    }

    #[test]
    fn a_link_to_nowhere_is_named_with_its_line() {
        assert_eq!(
            faults_in("text\n[a](gone.md)"),
            ["docs/page.md:2: link `gone.md` leads to docs/gone.md, which doesn't exist"]
        );
        assert_eq!(
            faults_in("[a](../README.md#use)"),
            ["docs/page.md:1: link `../README.md#use`: README.md has no heading that gives #use"]
        );
        assert!(faults_in("[a](../../x.md)")[0].contains("leads out of the repository"));
        assert!(faults_in("[a]: gone.md")[0].contains("docs/gone.md"));
    }

    #[test]
    fn code_is_no_link() {
        assert_eq!(faults_in("```rust\nlet a = b[0](gone);\n```\n`x[0](gone)`"), [""; 0]);
    }
}
