//! Repair of a data folder whose node isn't running.
//!
//! Owns: cutting an unfinished last record, with a report. Never: takes away a whole record, not even a
//! damaged one, because it may have been acknowledged. An ordinary start makes the same cut; this is for
//! people who want to see it, or to make sure of it, before they start.

use crate::data_folder::{DataFolder, FolderError};
use crate::log_store::UnfinishedEnd;
use crate::log_store::scan::LogScan;
use crate::storage::{Storage, at_once};
use std::fmt;
use std::path::Path;

/// What `repair` found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairReport {
    /// Files of the log that were read.
    pub files: usize,
    /// Whole records that were found, and stay.
    pub records: u64,
    /// What was cut; empty if the log was sound.
    pub cut: Vec<UnfinishedEnd>,
}

impl fmt::Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read {} log files with {} whole records", self.files, self.records)?;
        for end in &self.cut {
            let file = end.file.display();
            if end.whole_bytes == 0 {
                write!(f, "; removed {file}, which held no whole record ({} bytes)", end.cut_bytes)?;
            } else {
                write!(
                    f,
                    "; cut {} bytes of an unfinished record behind byte {} of {file}",
                    end.cut_bytes, end.whole_bytes
                )?;
            }
        }
        if self.cut.is_empty() { write!(f, "; nothing to repair") } else { Ok(()) }
    }
}

/// Cuts an unfinished last record of the log in the data folder at `path`. Fails, and changes nothing, if a
/// node runs on the folder or if the log is damaged beyond that.
pub fn repair(path: &Path) -> Result<RepairReport, FolderError> {
    let storage = Storage::system();
    let files = &**storage.files();
    let folder = DataFolder::open_existing(&storage, path)?;
    let log_folder = folder.log_folder();
    if !files.exists(&log_folder) {
        return Ok(RepairReport { files: 0, records: 0, cut: Vec::new() });
    }
    let scan = LogScan::of(files, &log_folder)?;
    at_once(scan.cut_unfinished(files, &log_folder))?;
    Ok(RepairReport { files: scan.files, records: scan.records, cut: scan.unfinished })
}
