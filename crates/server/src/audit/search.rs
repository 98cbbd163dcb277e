//! Which records somebody looks for.
//!
//! Owns: the filter, and how much work a search may be. Never: a file that it wasn't given.

use super::files::{Place, files_of};
use super::project::quoted;
use super::read::{Backward, Forward};
use super::tail::{ms_of, parse_at};
use kunci_api::AuditRecord;
use std::io;
use std::path::Path;

/// What somebody looks for. What isn't said is anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sought {
    /// The resource of this name.
    pub resource: Option<String>,
    /// Resources whose name begins like this.
    pub prefix: Option<String>,
    /// The owner of this name.
    pub owner: Option<String>,
    /// Any of these kinds; with none, every kind but `log` and `covered`.
    pub kinds: Vec<String>,
    /// The lease with this token.
    pub token: Option<u64>,
    /// Not before this wall time, in ms since 1970.
    pub from_ms: Option<u64>,
    /// Before this wall time, in ms since 1970.
    pub to_ms: Option<u64>,
}

impl Sought {
    /// Reads a line, if it may be one of those. Gaps are always among them: who looks must know of them.
    pub fn read(&self, line: &[u8]) -> Option<AuditRecord> {
        // Most lines are told apart without being read.
        if let Some(resource) = &self.resource
            && !contains(line, &quoted(resource))
            && !contains(line, b"{\"kind\":\"gap\"")
        {
            return None;
        }
        let record = serde_json::from_slice(line).ok()?;
        self.is_met(&record).then_some(record)
    }

    fn is_met(&self, record: &AuditRecord) -> bool {
        let is = |sought: &Option<String>, found: &Option<String>| sought.is_none() || sought == found;
        let wall_ms = ms_of(&record.wall_time);
        let in_time = self.from_ms.is_none_or(|from| wall_ms.is_none_or(|at| at >= from))
            && self.to_ms.is_none_or(|to| wall_ms.is_none_or(|at| at < to));
        if record.kind == "gap" && self.kinds.is_empty() {
            return in_time;
        }
        let kind = if self.kinds.is_empty() {
            !matches!(record.kind.as_str(), "log" | "covered")
        } else {
            self.kinds.contains(&record.kind)
        };
        let prefix = self.prefix.as_ref();
        let begins = prefix.is_none_or(|prefix| {
            record.resource.as_ref().is_some_and(|name| name.starts_with(prefix.as_str()))
        });
        kind && in_time
            && begins
            && is(&self.resource, &record.resource)
            && is(&self.owner, &record.owner)
            && (self.token.is_none() || self.token == record.fencing_token)
    }
}

pub(super) fn contains(line: &[u8], sought: &[u8]) -> bool {
    // Names begin with different letters more often than with the same quotation mark.
    let Some(first) = sought.get(1) else { return true };
    let rest = sought.get(1..).unwrap_or_default();
    line.iter()
        .enumerate()
        .filter(|(_, byte)| *byte == first)
        .any(|(at, _)| line.get(at..).is_some_and(|line| line.starts_with(rest)))
}

/// A search from the newest record to the oldest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// What is sought.
    pub sought: Sought,
    /// Records of places before this one, as [`Found::next`] says.
    pub before: Option<String>,
    /// At most so many records.
    pub limit: usize,
    /// At most about so many bytes are looked through.
    pub bytes_max: u64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The records, newest first.
    pub records: Vec<AuditRecord>,
    /// Where to go on, unless everything was looked at.
    pub next: Option<String>,
    /// How many bytes were looked through.
    pub scanned_bytes: u64,
}

impl Search {
    /// Whether a text is a place to go on from.
    pub fn is_place(text: &str) -> bool {
        parse_at(text).is_some()
    }

    /// Looks through the files of a folder.
    ///
    /// # Errors
    /// When they can't be read.
    pub fn run(&self, folder: &Path) -> io::Result<Found> {
        let mut found = Found::default();
        let before = self.before.as_deref().and_then(parse_at);
        let mut places = files_of(folder)?;
        // Files that are all behind that place needn't be read.
        while let (Some(before), Some(newest)) = (before, places.last())
            && first_place(newest).is_some_and(|first| first >= before)
        {
            places.pop();
        }
        let mut lines = Backward::open(&places)?;
        // What only leads to that place isn't looked through.
        let mut skipped = None;
        // The last place that was passed: what has none of its own stands before it.
        let mut passed = None;
        loop {
            let lines_scanned = lines.scanned();
            let Some(line) = lines.next()? else { break };
            if let Some(at) = at_of(line) {
                if before.is_some_and(|before| at >= before) {
                    continue;
                }
                passed = Some(at);
            } else if before.is_some() && passed.is_none() {
                continue;
            }
            found.records.extend(self.sought.read(line));
            let skipped = *skipped.get_or_insert(lines_scanned);
            let is_full = found.records.len() >= self.limit || lines_scanned - skipped >= self.bytes_max;
            if let (true, Some((index, number))) = (is_full, passed) {
                found.next = Some(format!("{index}.{number}"));
                break;
            }
            if found.records.len() >= self.limit.saturating_mul(2) {
                break;
            }
        }
        found.scanned_bytes = lines.scanned();
        Ok(found)
    }
}

/// The first place in a file, if one of its first lines has one.
fn first_place(place: &Place) -> Option<(u64, u32)> {
    let lines = Forward::open(std::slice::from_ref(place)).take(8);
    lines.filter_map(Result::ok).find_map(|line| at_of(&line))
}

/// The place of a line, found without reading all of it: it stands behind the kind and the time.
fn at_of(line: &[u8]) -> Option<(u64, u32)> {
    const NAME: &[u8] = b"\"at\":\"";
    let head = line.get(..line.len().min(160))?;
    let begins = head.windows(NAME.len()).position(|part| part == NAME)? + NAME.len();
    let rest = head.get(begins..)?;
    let ends = rest.iter().position(|byte| *byte == b'"')?;
    parse_at(std::str::from_utf8(rest.get(..ends)?).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, name: &str, range: std::ops::Range<u64>) {
        let line = |index: u64| {
            format!(
                "{{\"kind\":\"granted\",\"wallTime\":\"2026-01-01T00:00:00.000Z\",\"at\":\"{index}.0\",\
                 \"resource\":\"r{}\"}}\n",
                index % 3
            )
        };
        std::fs::write(folder.join(name), range.map(line).collect::<String>()).unwrap();
    }

    #[test]
    fn pages_go_back_through_all_files_and_miss_nothing() {
        let folder = tempfile::tempdir().unwrap();
        file(folder.path(), "audit-00000001-x.jsonl", 0..2_000);
        file(folder.path(), "audit-00000002-x.jsonl", 2_000..2_001);
        file(folder.path(), "audit.jsonl", 2_001..5_000);
        let sought = Sought { resource: Some("r1".to_owned()), ..Sought::default() };
        let mut search = Search { sought, before: None, limit: 100, bytes_max: 200_000 };
        let mut seen = Vec::new();
        loop {
            let found = search.run(folder.path()).unwrap();
            assert!(found.records.len() <= 100);
            seen.extend(found.records.into_iter().map(|record| record.at.unwrap()));
            match found.next {
                Some(next) => search.before = Some(next),
                None => break,
            }
        }
        let wanted = (0..5_000).rev().filter(|index| index % 3 == 1).map(|index| format!("{index}.0"));
        assert_eq!(seen, wanted.collect::<Vec<_>>());
    }
}
