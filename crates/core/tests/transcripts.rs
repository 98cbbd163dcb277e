//! The locks' behaviour as transcripts: intent in English, entry, full output.
//!
//! Owns: what is run on each line. After every entry all invariants are checked, the entry's bytes read back the
//! same, time doesn't stand still before a deadline, and a table restored from a snapshot that was taken before
//! the entry does exactly the same. `KUNCI_BLESS=1` writes what is found instead of comparing it.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod harness;

use harness::names::Names;
use harness::{parse, show};
use kunci_core::command::{Command, Entry};
use kunci_core::{LockTable, Restore};
use kunci_types::ClusterTime;
use std::fmt::Write;
use std::path::Path;

#[test]
fn transcripts_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut differing = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no transcript was found");
    for file in files {
        let wanted = std::fs::read_to_string(&file).unwrap();
        let found = run(&wanted);
        if std::env::var_os("KUNCI_BLESS").is_some() {
            std::fs::write(&file, found).unwrap();
        } else if wanted != found {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            differing.push(format!("{name}: {}", first_difference(&wanted, &found)));
        }
    }
    assert!(
        differing.is_empty(),
        "transcripts differ; if they should, KUNCI_BLESS=1 rewrites them:\n{}",
        differing.join("\n")
    );
}

/// Case C11: fifty leases of one owner end in one entry, each with a waiter. Every replica, one that was restarted
/// from a snapshot too, gives the same token for the same resource.
#[test]
fn tokens_are_equal_everywhere_when_fifty_leases_end_together() {
    let mut script = String::from("# C11\n");
    for number in 1..=50 {
        // Asked for out of order, so that the order of names, queues and arrivals differ.
        let resource = format!("r{}", number * 37 % 53);
        writeln!(script, "@0 acquire {resource} a/q{number} ttl=5s").unwrap();
        writeln!(script, "@0 acquire {resource} b/w{number} wait=1m").unwrap();
        writeln!(script, "@0 acquire {resource} c/x{number} wait=1m ttl=5s").unwrap();
    }
    let found = run(&format!("{script}@5s tick\n@35s tick\n"));
    assert_eq!(found.matches(" expired ").count(), 100);
    assert_eq!(found.matches("call w").count() + found.matches("call x").count(), 100);
    // Equal deadlines end in order of name, whatever the order of arrival.
    let order: Vec<&str> = found
        .lines()
        .filter(|line| line.starts_with("   event") && line.contains(" b: granted"))
        .map(|line| line.split(' ').nth(5).unwrap())
        .collect();
    assert!(order.is_sorted(), "{order:?}");
}

fn first_difference(wanted: &str, found: &str) -> String {
    let mut lines = (1..).zip(wanted.lines().zip(found.lines()));
    match lines.find(|(_, (wanted, found))| wanted != found) {
        Some((number, (wanted, found))) => format!("line {number}\n  wanted {wanted}\n  found  {found}"),
        None => "one is longer than the other".to_owned(),
    }
}

/// Runs a transcript and gives it back with the output that was found. Each entry is applied to a table restored from
/// a snapshot too, and both must answer alike (case C15: a snapshot leaves nothing out).
fn run(script: &str) -> String {
    let mut names = Names::default();
    let mut table = LockTable::new();
    let mut output = String::new();
    for line in script.lines().filter(|line| !line.starts_with("   ")) {
        output.push_str(line);
        output.push('\n');
        if let Some(entry) = line.strip_prefix('@') {
            let entry = parse::entry(entry, &table, &mut names);
            let found = apply(&mut table, &entry, &names);
            output.push_str(&found);
        } else if let Some(reading) = line.strip_prefix("? ") {
            output.push_str(&show::reading(&table, reading));
        } else {
            assert!(line.is_empty() || line.starts_with('#'), "not a line of a transcript: {line}");
        }
    }
    restored(&table).check();
    output
}

fn apply(table: &mut LockTable, entry: &Entry, names: &Names) -> String {
    assert_eq!(Entry::decode(&entry.encode()).as_ref(), Ok(entry), "an entry's bytes read back the same");
    let mut twin = restored(table);
    let frozen = table.snapshot();
    let digest_before = frozen.digest();
    let revision_before = table.revision();

    let applied = table.apply(entry);

    table.check();
    assert_eq!(frozen.digest(), digest_before, "a snapshot doesn't change with the table");
    assert_eq!(twin.apply(entry), applied, "a restored table does the same");
    twin.check();
    assert_eq!(twin.digest(), table.digest(), "a restored table becomes the same");
    // A policy can shorten the retry window, so that something is due that time couldn't know of.
    let shortened = entry.commands.iter().any(|command| matches!(command, Command::SetPolicy(_)));
    assert!(shortened || table.next_deadline().is_none_or(|at| at > table.now()), "what is due was done");
    let revisions: Vec<_> = applied.events.iter().map(|event| event.revision).collect();
    assert!(revisions.is_sorted_by(|a, b| a < b) && revisions.iter().all(|at| *at > revision_before));
    assert_eq!(applied.replies.len(), entry.commands.len(), "every command has one reply");
    show::applied(&applied, names)
}

fn restored(table: &LockTable) -> LockTable {
    let chunks: Vec<Vec<u8>> = table.snapshot().chunks().collect();
    let mut restore = Restore::default();
    for chunk in &chunks {
        restore.chunk(chunk).unwrap();
    }
    let restored = restore.finish().unwrap();
    assert_eq!(restored.digest(), table.digest());
    assert!(restored.snapshot().chunks().eq(chunks), "equal states have equal bytes");
    restored
}

/// Time at its type's limits saturates (case C30): nothing wraps, nothing panics.
#[test]
fn times_at_the_type_limit_saturate() {
    let mut names = Names::default();
    let mut table = LockTable::new();
    let late = u64::MAX - 24 * 3_600_000;
    apply(&mut table, &Entry::new(ClusterTime::from_ms(late), Vec::new()), &names);
    let mut entry = parse::entry("0 acquire r a/q ttl=1h & acquire r b/w wait=1h", &table, &mut names);
    entry.now = ClusterTime::from_ms(late);
    let found = apply(&mut table, &entry, &names);
    assert!(found.contains("left=3600000"), "{found}");
}
