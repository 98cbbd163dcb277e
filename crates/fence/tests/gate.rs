//! The durable gate with real files and real processes.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in its helpers too")]

use kunci_fence::gate::{AdmitError, Admitted, FileGate, OpenError};
use kunci_types::{FencingToken, ResourceName};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where a process of these tests finds its folder and what it is to do.
const WORK: &str = "GATE_WORK";

fn name(text: &str) -> ResourceName {
    ResourceName::parse(text).unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::presented(number).unwrap()
}

/// This very test program as another process that does `work` in `folder`.
fn process(work: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_other_process", "--nocapture"])
        .env(WORK, format!("{work} {}", folder.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Not a test of its own: it is the other process of the tests below, and passes at once otherwise.
#[test]
fn the_other_process() {
    let Ok(work) = std::env::var(WORK) else { return };
    let (work, folder) = work.split_once(' ').unwrap();
    let gate = FileGate::open(Path::new(folder)).unwrap();
    match work {
        "hold" => {
            println!("\nopen");
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        "load" => std::thread::scope(|scope| {
            for worker in 0..8_u64 {
                let gate = &gate;
                scope.spawn(move || {
                    let resource = name(&format!("r/{worker}"));
                    let first = gate.kept_of(&resource).map_or(1, |kept| kept.get() + 1);
                    for number in first.. {
                        gate.admit_blocking(&resource, token(number)).unwrap();
                        println!("\n{worker} {number}");
                    }
                });
            }
        }),
        other => panic!("{other}"),
    }
}

/// S9 across crashes: what a killed process was told to be admitted is what the next one compares with.
#[test]
fn whatever_was_admitted_is_kept_when_the_process_is_killed_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let mut admitted: HashMap<String, u64> = HashMap::new();
    for round in 0..8 {
        let mut process = process("load", folder.path());
        let said = BufReader::new(process.stdout.take().unwrap());
        let mut lines = said.lines().map_while(Result::ok);
        let mut note = |line: &str| {
            let (worker, number) = line.split_once(' ')?;
            let kept = admitted.entry(format!("r/{worker}")).or_default();
            *kept = (*kept).max(number.parse().ok()?);
            Some(())
        };
        let wanted = 50 + 37 * round;
        for _ in 0..wanted {
            let line = lines.by_ref().find(|line| line.starts_with(|first: char| first.is_ascii_digit()));
            note(&line.expect("the process goes on")).unwrap();
        }
        process.kill().unwrap();
        process.wait().unwrap();
        // A last line may be cut short: a shorter number is a smaller one, which was admitted as well.
        lines.for_each(|line| _ = note(&line));
        let gate = FileGate::open(folder.path()).unwrap();
        for (resource, number) in &admitted {
            let kept = gate.kept_of(&name(resource)).unwrap();
            assert!(kept.get() >= *number, "round {round}: {resource} went back from {number} to {kept}");
            let late = gate.admit_blocking(&name(resource), token(number.saturating_sub(1).max(1)));
            assert!(*number == 1 || matches!(late, Err(AdmitError::Rejected(_))), "{late:?}");
        }
    }
    assert_eq!(admitted.len(), 8);
}

#[test]
fn a_folder_has_one_process_at_a_time_and_a_killed_one_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let mut holder = process("hold", folder.path());
    let mut said = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap() == "open"));
    let refused = FileGate::open(folder.path()).unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
    assert!(refused.to_string().contains(&format!("by process {}", holder.id())), "{refused}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    FileGate::open(folder.path()).unwrap();
}

#[test]
fn a_gate_of_this_process_is_in_use_until_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let gate = FileGate::open(folder.path()).unwrap();
    assert!(matches!(FileGate::open(folder.path()), Err(OpenError::InUse { .. })));
    drop(gate);
    FileGate::open(folder.path()).unwrap();
}

/// A file as a process leaves it that is killed, so that its end isn't written anew; and its last tokens.
fn left_behind(folder: &Path) -> Vec<u8> {
    let gate = FileGate::open(folder).unwrap();
    for number in 1..=5 {
        gate.admit_blocking(&name("r"), token(number)).unwrap();
    }
    drop(gate);
    std::fs::read(folder.join("tokens")).unwrap()
}

#[test]
fn a_file_cut_anywhere_opens_with_what_is_whole_or_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = left_behind(folder.path());
    let path = folder.path().join("tokens");
    let mut last = None;
    for cut in 0..=bytes.len() {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        match FileGate::open(folder.path()) {
            Ok(gate) => {
                let kept = gate.kept_of(&name("r"));
                assert!(kept >= last, "cut at {cut}: {kept:?} after {last:?}");
                last = kept;
                // It goes on, and what was cut doesn't come back.
                gate.admit_blocking(&name("q"), token(9)).unwrap();
                drop(gate);
                assert_eq!(FileGate::open(folder.path()).unwrap().kept_of(&name("r")), kept);
            }
            Err(error) => {
                assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
                assert!(cut < 32, "cut at {cut}: {error}");
                assert_eq!(std::fs::read(&path).unwrap(), &bytes[..cut]);
            }
        }
    }
    assert_eq!(last, Some(token(5)));
}

#[test]
fn damage_is_refused_in_words_that_say_what_to_do_and_a_floor_helps() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = left_behind(folder.path());
    bytes[40] ^= 1;
    std::fs::write(folder.path().join("tokens"), &bytes).unwrap();
    let refused = FileGate::open(folder.path()).unwrap_err().to_string();
    for part in ["tokens is damaged at byte 32", "Nothing was changed", "begin with a floor"] {
        assert!(refused.contains(part), "{refused}");
    }
    std::fs::rename(folder.path().join("tokens"), folder.path().join("tokens.damaged")).unwrap();
    let gate = FileGate::open(folder.path()).unwrap();
    assert_eq!(gate.raise_floor(token(6)), Ok(0));
    assert!(matches!(gate.admit_blocking(&name("r"), token(5)), Err(AdmitError::Rejected(_))));
    drop(gate);
    let gate = FileGate::open(folder.path()).unwrap();
    assert!(matches!(gate.admit_blocking(&name("r"), token(5)), Err(AdmitError::Rejected(_))));
    assert_eq!(gate.admit_blocking(&name("r"), token(7)), Ok(Admitted::Newer));
}

#[tokio::test]
async fn a_long_file_is_written_anew_and_keeps_everything() {
    let folder = tempfile::tempdir().unwrap();
    let gate = std::sync::Arc::new(FileGate::open(folder.path()).unwrap());
    let names: Vec<_> = (0..2_000).map(|number| name(&format!("{:0>200}", format!("r/{number}")))).collect();
    // Each round is about 420 KiB.
    for round in 1..=20 {
        let mut admits = tokio::task::JoinSet::new();
        for name in names.clone() {
            let gate = std::sync::Arc::clone(&gate);
            admits.spawn(async move { gate.admit(&name, token(round)).await });
        }
        assert_eq!(admits.join_all().await, vec![Ok(Admitted::Newer); 2_000]);
    }
    let length = std::fs::metadata(folder.path().join("tokens")).unwrap().len();
    assert!(length < 6 << 20, "{length} bytes for {} resources", names.len());
    drop(gate);
    // The last admission ran on another thread, which lets the gate go a moment after it answered.
    let mut opened = FileGate::open(folder.path());
    while matches!(opened, Err(OpenError::InUse { .. })) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        opened = FileGate::open(folder.path());
    }
    let gate = opened.unwrap();
    assert!(names.iter().all(|name| gate.kept_of(name) == Some(token(20))));
}

#[tokio::test]
async fn many_tasks_on_one_thread_wait_for_the_same_disk() {
    let folder = tempfile::tempdir().unwrap();
    let gate = std::sync::Arc::new(FileGate::open(folder.path()).unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    for number in 1..=1_000 {
        let gate = std::sync::Arc::clone(&gate);
        tasks.spawn(async move { gate.admit(&name(&format!("r/{number}")), token(number)).await });
    }
    let all = tokio::time::timeout(Duration::from_secs(30), tasks.join_all()).await.unwrap();
    assert_eq!(all, vec![Ok(Admitted::Newer); 1_000]);
}
