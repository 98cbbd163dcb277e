//! Commands of a page, and what the page shows of their output.
//!
//! Owns: what a `console` block means. A prompt (`$ `, or a machine's name and `$ `) begins a command, what follows
//! until the next one is its output, and `…` stands for anything; output that isn't shown isn't compared. Never:
//! runs one.

/// A command of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step<'a> {
    /// Line of the page, from 1.
    pub(crate) line: usize,
    /// The machine that the prompt names; empty for a plain prompt.
    pub(crate) machine: &'a str,
    pub(crate) command: &'a str,
    pub(crate) shown: Vec<&'a str>,
}

/// The fenced blocks in this language: the line of each and its text.
pub(crate) fn blocks<'a>(page: &'a str, language: &str) -> Vec<(usize, &'a str)> {
    let mut blocks = Vec::new();
    let opening = format!("```{language}\n");
    for (at, _) in page.match_indices(&opening) {
        let begin = at + opening.len();
        let end = page[begin..].find("\n```").map_or(page.len(), |end| begin + end);
        blocks.push((page[..begin].lines().count() + 1, &page[begin..end]));
    }
    blocks
}

/// The commands of the `console` blocks, in order.
pub(crate) fn steps(page: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for (first, block) in blocks(page, "console") {
        for (index, text) in block.lines().enumerate() {
            if let Some((machine, command)) = prompt(text) {
                steps.push(Step { line: first + index, machine, command, shown: Vec::new() });
            } else if let Some(step) = steps.last_mut() {
                step.shown.push(text);
            }
        }
    }
    steps
}

fn prompt(text: &str) -> Option<(&str, &str)> {
    let (machine, command) = text.split_once("$ ")?;
    machine.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some((machine, command))
}

/// Whether `found` is what is shown, where `…` is anything; how wide a gap between columns is doesn't count.
pub(crate) fn is_as_shown(shown: &str, found: &str) -> bool {
    let (shown, found) = (narrow(shown), narrow(found));
    let mut parts = shown.split('…');
    let Some(mut rest) = parts.next().and_then(|first| found.strip_prefix(first)) else { return false };
    let mut last = "";
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        last = part;
    }
    // Whatever comes after the last `…` has to reach to the end.
    rest.is_empty() || (shown.contains('…') && found.ends_with(last))
}

fn narrow(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn an_ellipsis_stands_for_anything_and_nothing_else_does() {
    assert!(is_as_shown("token …", "token 7"));
    assert!(is_as_shown("a…b…c", "a1b2b3c"));
    assert!(is_as_shown("…", ""));
    assert!(!is_as_shown("token …", "no token 7"));
    assert!(!is_as_shown("a…b", "a1bc"));
    assert!(!is_as_shown("same", "same and more"));
}

#[test]
fn a_prompt_may_name_a_machine_and_output_that_has_a_dollar_is_no_prompt() {
    assert_eq!(prompt("$ ls"), Some(("", "ls")));
    assert_eq!(prompt("db1$ ls"), Some(("db1", "ls")));
    assert_eq!(prompt("it costs 5 $ now"), None);
}
