//! How much of the machine a process uses.

use std::fmt;
use std::path::Path;

/// Of one process, at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Vitals {
    /// Memory that it has, in MiB.
    pub(super) memory_mib: u64,
    /// Open files and sockets.
    pub(super) files: usize,
    pub(super) threads: u64,
    /// Time that it has had on a core since it started, in seconds.
    pub(super) cpu_s: u64,
}

impl fmt::Display for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory_mib, files, threads, cpu_s } = self;
        write!(f, "{memory_mib:>5} MiB {files:>5} files {threads:>3} threads {cpu_s:>5} s on a core")
    }
}

impl Vitals {
    /// Of that process; `None` when it is gone.
    pub(super) fn of(process: u32) -> Option<Self> {
        let folder = Path::new("/proc").join(process.to_string());
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        let field = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
        };
        let files = std::fs::read_dir(folder.join("fd")).ok()?.count();
        let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
        // After the name, which may have spaces in it. The kernel counts a hundred a second.
        let times = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(2);
        let cpu_s = times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() / 100;
        Some(Self { memory_mib: field("VmRSS")? / 1_024, files, threads: field("Threads")?, cpu_s })
    }

    /// Of this process.
    pub(super) fn own() -> Self {
        Self::of(std::process::id()).unwrap_or_default()
    }
}
