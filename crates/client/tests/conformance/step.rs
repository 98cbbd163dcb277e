//! The script as text.

use std::time::Duration;

/// Some steps that belong together.
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

/// One line.
pub(crate) struct Step {
    /// From 1.
    pub(crate) number: usize,
    pub(crate) line: String,
    pub(crate) words: Vec<String>,
    pub(crate) expected: Option<String>,
}

impl Scenario {
    pub(crate) fn read_all(script: &str) -> Vec<Self> {
        let mut scenarios: Vec<Self> = Vec::new();
        let lines = (1..).zip(script.lines());
        for (number, line) in lines.filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty()) {
            match (line.strip_prefix("== "), scenarios.last_mut()) {
                (Some(name), _) => scenarios.push(Self { name: name.to_owned(), steps: Vec::new() }),
                (None, Some(scenario)) => scenario.steps.push(Step::read(number, line)),
                (None, None) => panic!("a step before the first scenario: {line}"),
            }
        }
        scenarios
    }
}

impl Step {
    fn read(number: usize, line: &str) -> Self {
        let (what, expected) = match line.split_once(" -> ") {
            Some((what, expected)) => (what, Some(expected.to_owned())),
            None => (line, None),
        };
        let words = what.split_whitespace().map(str::to_owned).collect();
        Self { number, line: line.to_owned(), words, expected }
    }

    /// `name=1.5s`
    pub(crate) fn time(&self, name: &str) -> Option<Duration> {
        let prefix = format!("{name}=");
        self.words.iter().find_map(|word| word.strip_prefix(&prefix)).map(seconds)
    }
}

/// `1.5s`
pub(crate) fn seconds(text: &str) -> Duration {
    Duration::from_secs_f64(text.strip_suffix('s').unwrap().parse().unwrap())
}
