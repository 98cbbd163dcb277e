//! A wall clock that jumps, for one process: `libfaketime`, with monotonic clocks left alone.
//!
//! Owns: the file that says by how much the process's wall clock is wrong; it is read again at every look.

use super::programs::false_time_library;
use std::path::{Path, PathBuf};

/// A clock's fault.
#[derive(Clone)]
pub(crate) struct FalseTime {
    file: PathBuf,
}

impl FalseTime {
    /// One that is right for now.
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        let clock = Self { file: folder.join(format!("{name}.time")) };
        clock.jump(0);
        clock
    }

    /// Sets it so many seconds off.
    pub(crate) fn jump(&self, seconds: i64) {
        let next = self.file.with_extension("next");
        std::fs::write(&next, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(next, &self.file).unwrap();
    }

    /// What makes a process see it.
    pub(super) fn variables(&self) -> Vec<(&'static str, std::ffi::OsString)> {
        vec![
            ("LD_PRELOAD", false_time_library().unwrap().into()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.clone().into()),
            ("FAKETIME_NO_CACHE", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            ("FAKETIME_DONT_RESET", "1".into()),
        ]
    }
}
