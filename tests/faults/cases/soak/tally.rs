//! What the clients did, in numbers.

use crate::clock::now_us;
use kunci_client::Error;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

/// The sum over all clients.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<Numbers>);

#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    /// How often something came to pass, by its name.
    counts: BTreeMap<String, u64>,
    last_grant_us: u64,
    /// The longest time in which nobody got a lock.
    pub(super) longest_gap: Duration,
}

impl Numbers {
    /// How often that came to pass.
    pub(super) fn of(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or_default()
    }
}

/// One line for each.
impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts.iter().try_for_each(|(what, count)| writeln!(f, "{count:>9}  {what}"))
    }
}

impl Tally {
    /// Counts one.
    pub(super) fn add(&self, what: &str) {
        let mut numbers = self.0.lock().unwrap();
        match numbers.counts.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(numbers.counts.insert(what.to_owned(), 1)),
        }
    }

    /// Counts a lock that somebody got.
    pub(super) fn got(&self, how: &str) {
        self.add(how);
        self.add("locks had");
        let mut numbers = self.0.lock().unwrap();
        let now = now_us();
        if numbers.last_grant_us > 0 {
            let gap = Duration::from_micros(now.saturating_sub(numbers.last_grant_us));
            numbers.longest_gap = numbers.longest_gap.max(gap);
        }
        numbers.last_grant_us = now;
    }

    /// Counts an error by its kind.
    pub(super) fn failed(&self, error: &Error) {
        let kind = format!("{:?}", error.kind());
        let name: String = kind.chars().take_while(|letter| *letter != ' ' && *letter != '{').collect();
        self.add(&format!("error {name}"));
    }

    /// All of it.
    pub(super) fn numbers(&self) -> Numbers {
        self.0.lock().unwrap().clone()
    }
}
