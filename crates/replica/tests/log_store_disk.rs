//! What is acknowledged is on disk, by name and by content; and a full disk loses nothing.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't set up its files should fail on the spot"
)]

mod log_store_support;

use kunci_replica::data_folder::{DataFolder, Expected};
use kunci_replica::log_store::{LogOptions, LogStore};
use kunci_replica::raft_types::{LogId, SnapshotMeta, StoredMembership};
use log_store_support::{append, at_once, entry, membership, small_files, texts, vote};
use openraft::storage::RaftLogStorage;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

const CHILD_FOLDER: &str = "KUNCI_TEST_TRACED_FOLDER";

/// Not a test by itself: what the traced process does. It writes a byte to `DATA/../acknowledged` after
/// each operation that has to be on disk.
#[tokio::test]
#[ignore = "the traced child of nothing_is_acknowledged_before_its_content_and_its_name_are_on_disk"]
async fn traced_child() {
    let folder = std::env::var(CHILD_FOLDER).unwrap();
    let folder = Path::new(&folder);
    let mut acknowledged = fs::File::create(folder.join("acknowledged")).unwrap();
    let mut acknowledge = || acknowledged.write_all(b"!").unwrap();

    let data = DataFolder::open(&folder.join("DATA"), Expected::default()).unwrap();
    acknowledge();
    let mut stores = data.open_stores(&small_files()).await.unwrap();
    stores.log.save_vote(&vote(1)).await.unwrap();
    acknowledge();
    for index in 1..=20 {
        append(&mut stores.log, [entry(index, "text")]).await.unwrap();
        acknowledge();
    }
    let last = Some(LogId::new_term_index(1, 15));
    let meta = SnapshotMeta { last_log_id: last, last_membership: StoredMembership::new(last, membership()) };
    stores.snapshots.write(meta, 3, [b"state"]).await.unwrap();
    acknowledge();
    stores.log.purge(LogId::new_term_index(1, 10)).await.unwrap();
    stores.log.truncate_after(Some(LogId::new_term_index(1, 18))).await.unwrap();
    acknowledge();
}

/// C106: each file operation is recorded; at each acknowledgement no written byte may be unsynced in its
/// file, and no new name unsynced in its folder.
#[test]
fn nothing_is_acknowledged_before_its_content_and_its_name_are_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let status = Command::new("strace")
        .args([
            "-f",
            "-y",
            "-qq",
            "-e",
            "trace=openat,rename,renameat2,mkdir,write,writev,pwrite64,fsync,fdatasync",
        ])
        .arg("-o")
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "traced_child", "--ignored"])
        .env(CHILD_FOLDER, folder.path())
        .status();
    let status = status.unwrap_or_else(|error| panic!("this test needs the program strace: {error}"));
    assert!(status.success(), "the traced child failed, or strace may not trace here: {status}");

    let mut disk = Disk::default();
    for line in fs::read_to_string(&trace).unwrap().lines() {
        disk.take(line);
    }

    assert_eq!(disk.acknowledged, 24);
    assert!(disk.log_files > 3, "only {} log files were begun", disk.log_files);
    assert_eq!(disk.renames, 3, "identity, its note of the first vote, snapshot");
}

/// The check above is worth something only if it can fail.
#[test]
fn the_check_of_the_trace_sees_each_missing_sync() {
    const SOUND: [&str; 7] = [
        r#"7 openat(AT_FDCWD</>, "/t/DATA/log/r-1.wal", O_RDWR|O_CREAT|O_EXCL|O_APPEND, 0666) = 9</t/DATA/log/r-1.wal>"#,
        "7 fsync(10</t/DATA/log>) = 0",
        r#"8 writev(9</t/DATA/log/r-1.wal>, [{iov_base="x", iov_len=1}], 1) = 1"#,
        "8 fdatasync(9</t/DATA/log/r-1.wal> <unfinished ...>",
        r#"7 openat(AT_FDCWD</>, "/t/DATA/other", O_RDONLY) = -1 ENOENT (No such file or directory)"#,
        "8 <... fdatasync resumed>) = 0",
        r#"7 write(3</t/acknowledged>, "!", 1) = 1"#,
    ];
    let acknowledges = |left_out: Option<usize>| {
        let lines: Vec<_> = SOUND.into_iter().enumerate().filter(|(at, _)| Some(*at) != left_out).collect();
        std::panic::catch_unwind(|| {
            let mut disk = Disk::default();
            lines.iter().for_each(|(_, line)| disk.take(line));
            disk.acknowledged
        })
    };
    assert_eq!(acknowledges(None).unwrap(), 1);
    assert!(acknowledges(Some(1)).is_err(), "a missing folder sync went unseen");
    assert!(acknowledges(Some(5)).is_err(), "a sync that hadn't ended counted");
}

/// What of the traced process's writes isn't durable yet.
#[derive(Default)]
struct Disk {
    /// The first part of a call that another thread interrupted, by thread.
    begun: HashMap<String, String>,
    unsynced_files: HashSet<String>,
    unsynced_names: HashSet<String>,
    acknowledged: u32,
    log_files: u32,
    renames: u32,
}

impl Disk {
    fn take(&mut self, line: &str) {
        let (thread, call) = line.split_once(char::is_whitespace).unwrap();
        let call = call.trim_start();
        if let Some(begun) = call.strip_suffix(" <unfinished ...>") {
            // A write counts from its beginning, a sync from its end.
            if begun.starts_with("write") || begun.starts_with("pwrite") {
                self.apply(&format!("{begun}) = 1"));
            } else {
                self.begun.insert(thread.to_owned(), begun.to_owned());
            }
        } else if call.starts_with("<...") {
            if let Some(begun) = self.begun.remove(thread) {
                self.apply(&format!("{begun}{}", call.split_once("resumed>").unwrap().1));
            }
        } else {
            self.apply(call);
        }
    }

    fn apply(&mut self, call: &str) {
        if call.contains(" = -1 ") {
            return;
        }
        let Some((name, arguments)) = call.split_once('(') else { return };
        let in_brackets =
            || arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or("", |p| p.0);
        let last_quoted = || arguments.rsplit('"').nth(1).unwrap_or("").to_owned();
        match name {
            "write" | "writev" | "pwrite64" if in_brackets().ends_with("/acknowledged") => {
                assert!(
                    self.unsynced_files.is_empty(),
                    "acknowledged before a sync of {:?}",
                    self.unsynced_files
                );
                assert!(
                    self.unsynced_names.is_empty(),
                    "acknowledged before a folder sync for {:?}",
                    self.unsynced_names
                );
                self.acknowledged += 1;
            }
            "write" | "writev" | "pwrite64" if is_data(in_brackets()) => {
                self.unsynced_files.insert(in_brackets().to_owned());
            }
            "fsync" | "fdatasync" => {
                let path = in_brackets();
                self.unsynced_files.remove(path);
                self.unsynced_names.retain(|name| Path::new(name).parent() != Some(Path::new(path)));
            }
            "openat" if call.contains("O_CREAT") && last_quoted().ends_with(".wal") => {
                self.log_files += 1;
                self.unsynced_names.insert(last_quoted());
            }
            "rename" | "renameat2" if last_quoted().contains("/DATA/") => {
                self.renames += 1;
                let from = arguments.split('"').nth(1).unwrap();
                assert!(
                    !self.unsynced_files.contains(from),
                    "{from} was renamed before its content was synced"
                );
                self.unsynced_names.insert(last_quoted());
            }
            "mkdir" if last_quoted().contains("/DATA") => {
                self.unsynced_names.insert(last_quoted());
            }
            _ => {}
        }
    }
}

fn is_data(path: &str) -> bool {
    path.contains("/DATA/") && !path.ends_with("/lock") && !path.ends_with("/LOCK")
}

/// A small file system for one test.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(folder.path()).output();
        match mount {
            Ok(output) if output.status.success() => Self(folder),
            other => {
                panic!("this test needs the right to mount a tmpfs (root, or a user namespace): {other:?}")
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(self.0.path()).status());
    }
}

/// C108: a full disk fails writes cleanly; with room again, the node starts with all it acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_acknowledged_and_a_restart_with_room_goes_on() {
    let disk = SmallDisk::mount();
    let (folder, filler) = (disk.0.path().join("log"), disk.0.path().join("filler"));
    fs::create_dir(&folder).unwrap();
    fs::write(&filler, vec![1; 300 << 10]).unwrap();
    let (mut log, _) = LogStore::open(&folder, &LogOptions::default()).unwrap();
    log.save_vote(&vote(1)).await.unwrap();
    let mut acknowledged = 0;
    let failure = loop {
        let index = acknowledged + 1;
        match append(&mut log, [entry(index, &format!("{index} {}", "x".repeat(5000)))]).await {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 1000, "the disk never got full");
    };
    assert!(failure.to_string().contains("No space left"), "{failure}");
    assert!(
        append(&mut log, [entry(acknowledged + 2, "more")]).await.is_err(),
        "writing goes on behind a failure"
    );
    drop(log);

    fs::remove_file(&filler).unwrap();
    let (mut log, _) = LogStore::open(&folder, &LogOptions::default()).unwrap();
    let found = texts(&mut log).await.len() as u64;
    assert!(found >= acknowledged, "{found} entries found, {acknowledged} were acknowledged");
    append(&mut log, [entry(found + 1, "after")]).await.unwrap();
    drop(log);

    let (mut log, cut) = LogStore::open(&folder, &LogOptions::default()).unwrap();
    assert_eq!((texts(&mut log).await.len() as u64, cut.len()), (found + 1, 0));
}

/// C108: a snapshot that found no room leaves the old one, and takes none.
#[test]
fn a_snapshot_that_finds_no_room_leaves_the_old_one_and_no_file() {
    use kunci_replica::data_folder::ClusterId;
    use kunci_replica::snapshot_store::SnapshotStore;

    let disk = SmallDisk::mount();
    let store = SnapshotStore::open(disk.0.path(), ClusterId::random().unwrap(), None).unwrap();
    let covering = |index| {
        let last = Some(LogId::new_term_index(1, index));
        SnapshotMeta { last_log_id: last, last_membership: StoredMembership::new(last, membership()) }
    };
    at_once(store.write(covering(1), 3, [b"small"])).unwrap();

    let chunks = std::iter::repeat_n(vec![1; 100_000], 20);
    let failure = at_once(store.write(covering(2), 3, chunks)).unwrap_err();

    assert!(failure.to_string().contains("No space left"), "{failure}");
    assert_eq!(store.newest().unwrap().meta(), &covering(1));
    assert_eq!(fs::read_dir(disk.0.path()).unwrap().count(), 1);
}
