//! A log survives a crash in the middle of a write, and refuses damage.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't set up its files should fail on the spot"
)]

mod log_store_support;

use kunci_replica::data_folder::{DataFolder, Expected, FolderError};
use kunci_replica::log_store::{LogOptions, LogStore};
use kunci_replica::repair::repair;
use log_store_support::{
    append, copy_of, entry, log_files, refusal, small_files, texts, vote, write_every_kind_of_record,
};
use openraft::storage::RaftLogStorage;
use std::fs;
use std::path::Path;

/// A log of five entries in one file, and where the file ended after each record from the third entry on.
async fn five_entries(folder: &Path) -> Vec<usize> {
    let (mut log, _) = LogStore::open(folder, &LogOptions::default()).unwrap();
    log.save_vote(&vote(1)).await.unwrap();
    let mut ends = Vec::new();
    for index in 1..=5 {
        append(&mut log, [entry(index, &format!("entry {index}"))]).await.unwrap();
        ends.push(fs::metadata(&log_files(folder)[0]).unwrap().len() as usize);
    }
    ends
}

/// Opens `folder`, whose file was changed to `content`, and expects the entries that were whole at `cut`.
/// Then writes one more and expects it, too, after another restart.
async fn expect_recovery(original: &Path, content: &[u8], whole: usize, what: &str) {
    let copy = copy_of(original);
    fs::write(&log_files(copy.path())[0], content).unwrap();
    let mut expected: Vec<_> = (1..=whole).map(|index| format!("entry {index}")).collect();

    let (mut log, _) =
        LogStore::open(copy.path(), &LogOptions::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(texts(&mut log).await, expected, "{what}");
    append(&mut log, [entry(whole as u64 + 1, "after the crash")]).await.unwrap();
    drop(log);

    let (mut log, cut) = LogStore::open(copy.path(), &LogOptions::default()).unwrap();
    expected.push("after the crash".to_owned());
    assert_eq!(texts(&mut log).await, expected, "{what}, after writing on");
    assert_eq!(log.vote().unwrap(), Some(vote(1)), "{what}");
    assert_eq!(cut, [], "{what}: the cut was made once");
}

/// C103, C104: every whole record stays, and what is written afterwards isn't hidden behind the torn one.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_cut_at_any_byte_of_its_last_three_records_starts_with_all_whole_ones_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let ends = five_entries(folder.path()).await;
    let content = fs::read(&log_files(folder.path())[0]).unwrap();
    for cut in ends[1]..=content.len() {
        let whole = ends.iter().filter(|end| **end <= cut).count();
        expect_recovery(folder.path(), &content[..cut], whole, &format!("cut at byte {cut}")).await;
    }
}

/// C103: the length reached the disk before the bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_goes_on_in_zeros_from_any_byte_of_its_last_three_records_starts_with_all_whole_ones() {
    let folder = tempfile::tempdir().unwrap();
    let ends = five_entries(folder.path()).await;
    let content = fs::read(&log_files(folder.path())[0]).unwrap();
    for cut in ends[1]..=content.len() {
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let mut lengths = vec![content.len().next_multiple_of(4096), content.len() + 10_000];
        // The checksum's last bytes alone can't be missing: a disk writes no piece that small.
        if cut + 4 <= content.len() {
            lengths.push(content.len());
        }
        for length in lengths {
            let mut torn = content[..cut].to_vec();
            torn.resize(length, 0);
            expect_recovery(folder.path(), &torn, whole, &format!("zeros from {cut} to {length}")).await;
        }
    }
}

/// C103: a crash right after a new file was begun.
#[tokio::test(flavor = "multi_thread")]
async fn a_newly_begun_file_without_its_whole_first_record_is_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = LogStore::open(folder.path(), &small_files()).unwrap();
    log.save_vote(&vote(1)).await.unwrap();
    // One checkpoint, one vote and four entries fill the first file of six records; the second is begun.
    append(&mut log, (1..=4).map(|index| entry(index, &format!("entry {index}")))).await.unwrap();
    log.sync().await.unwrap();
    drop(log);
    let files = log_files(folder.path());
    assert_eq!(files.len(), 2);
    let first_record = fs::read(&files[1]).unwrap();
    for cut in 0..first_record.len() {
        for length in [cut, first_record.len(), 4096] {
            let mut torn = first_record[..cut].to_vec();
            torn.resize(length, 0);
            // Bytes of the checksum alone can't be missing.
            if torn == first_record || (length == first_record.len() && cut + 4 > length) {
                continue;
            }
            let copy = copy_of(folder.path());
            fs::write(&log_files(copy.path())[1], &torn).unwrap();

            let (mut log, cut_ends) = LogStore::open(copy.path(), &small_files())
                .unwrap_or_else(|error| panic!("cut at {cut}, length {length}: {error}"));

            assert_eq!(texts(&mut log).await.len(), 4, "cut at {cut}, length {length}");
            assert_eq!(cut_ends.len(), 1);
            append(&mut log, [entry(5, "five")]).await.unwrap();
        }
    }
}

/// Every bit of the log is guarded, and none is taken for an unfinished write: also not in the last record,
/// which may have been acknowledged.
#[tokio::test]
async fn a_flipped_bit_anywhere_in_the_log_refuses_to_open() {
    let folder = tempfile::tempdir().unwrap();
    write_every_kind_of_record(folder.path()).await;
    let files = log_files(folder.path());
    assert!(files.len() > 2, "the log has only {} files", files.len());
    for file in files {
        let content = fs::read(&file).unwrap();
        for bit in 0..content.len() * 8 {
            let mut flipped = content.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&file, &flipped).unwrap();

            let refused = refusal(folder.path());

            assert!(
                matches!(refused, FolderError::LogDamaged { .. }),
                "{} bit {bit}: {refused}",
                file.display()
            );
        }
        fs::write(&file, &content).unwrap();
    }
    let (log, cut) = LogStore::open(folder.path(), &small_files()).unwrap();
    assert_eq!(cut, []);
    assert_eq!(log.vote().unwrap(), Some(vote(2)));
}

/// For each kind of record as the very last one.
#[tokio::test]
async fn a_flipped_bit_in_a_last_record_of_any_kind_refuses_to_open() {
    let folder = tempfile::tempdir().unwrap();
    write_every_kind_of_record(folder.path()).await;
    let file = log_files(folder.path()).pop().unwrap();
    let content = fs::read(&file).unwrap();
    // Cutting at each length that is sound gives each record of the file a turn as the last.
    for length in 1..=content.len() {
        fs::write(&file, &content[..length]).unwrap();
        if !matches!(LogStore::open(folder.path(), &small_files()), Ok((_, cut)) if cut.is_empty()) {
            fs::write(&file, &content).unwrap();
            continue;
        }
        for bit in 0..length * 8 {
            let mut flipped = content[..length].to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&file, &flipped).unwrap();
            let refused = refusal(folder.path());
            assert!(
                matches!(refused, FolderError::LogDamaged { .. }),
                "length {length} bit {bit}: {refused}"
            );
        }
    }
}

/// C103: only the end of a log can be unfinished. The last file is cut at each byte, too: it keeps what is whole.
#[tokio::test]
async fn a_log_cut_at_any_byte_of_any_file_keeps_all_whole_records_or_refuses_to_open() {
    let folder = tempfile::tempdir().unwrap();
    write_every_kind_of_record(folder.path()).await;
    let files = log_files(folder.path());
    let (last, earlier) = files.split_last().unwrap();
    let cut_copy = |file: &Path, content: &[u8]| {
        let copy = copy_of(folder.path());
        fs::write(copy.path().join(file.file_name().unwrap()), content).unwrap();
        copy
    };
    for file in earlier {
        let content = fs::read(file).unwrap();
        for cut in 0..content.len() {
            let refused = refusal(cut_copy(file, &content[..cut]).path());
            assert!(matches!(refused, FolderError::LogDamaged { .. }), "{}, byte {cut}", file.display());
        }
    }
    let content = fs::read(last).unwrap();
    let mut votes = Vec::new();
    for cut in 0..=content.len() {
        let (log, _) = LogStore::open(cut_copy(last, &content[..cut]).path(), &small_files()).unwrap();
        votes.push(log.vote().unwrap());
    }
    votes.dedup();
    assert_eq!(votes, [Some(vote(1)), Some(vote(2))], "the second vote is the last record");
}

#[tokio::test]
async fn a_missing_file_in_the_middle_of_the_log_refuses_to_open() {
    let folder = tempfile::tempdir().unwrap();
    write_every_kind_of_record(folder.path()).await;
    fs::remove_file(&log_files(folder.path())[1]).unwrap();

    assert!(matches!(refusal(folder.path()), FolderError::LogDamaged { .. }));
}

#[tokio::test]
async fn garbage_behind_the_last_record_refuses_to_open_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    five_entries(folder.path()).await;
    let file = &log_files(folder.path())[0];
    let mut content = fs::read(file).unwrap();
    content.extend([0xA5; 100]);
    fs::write(file, content).unwrap();

    let words = refusal(folder.path()).to_string();

    assert!(words.contains("is damaged at byte"), "{words}");
    assert!(words.contains("rebuild this member"), "{words}");
}

#[tokio::test]
async fn repair_cuts_only_an_unfinished_last_record_and_reports_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataFolder::open(folder.path(), Expected::default()).unwrap();
    let mut log = data.open_stores(&LogOptions::default()).await.unwrap().log;
    log.save_vote(&vote(1)).await.unwrap();
    append(&mut log, [entry(1, "one"), entry(2, "two")]).await.unwrap();
    assert!(
        matches!(repair(folder.path()), Err(FolderError::InUse { .. })),
        "a running node's log was repaired"
    );
    drop((log, data));
    let sound = repair(folder.path()).unwrap();
    assert_eq!((sound.cut.len(), sound.records), (0, 4));

    let file = log_files(&folder.path().join("log"))[0].clone();
    let content = fs::read(&file).unwrap();
    fs::write(&file, &content[..content.len() - 3]).unwrap();
    let report = repair(folder.path()).unwrap();
    assert_eq!((report.cut.len(), report.records), (1, 3), "{report}");
    assert_eq!(fs::metadata(&file).unwrap().len(), report.cut[0].whole_bytes);
    assert!(report.to_string().contains("bytes of an unfinished record"), "{report}");

    let mut damaged = content.clone();
    damaged[20] ^= 1;
    fs::write(&file, &damaged).unwrap();
    assert!(matches!(repair(folder.path()), Err(FolderError::LogDamaged { .. })));
    assert_eq!(fs::read(&file).unwrap(), damaged, "a refused repair changes nothing");
}
