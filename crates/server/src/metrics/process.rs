//! What the system says of this process.
//!
//! Owns: reading it from `/proc`. Never: an error; what can't be read isn't shown.

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use std::fs;

/// What the system says of this process.
pub(super) struct Process {
    /// In ms since 1970.
    pub(super) started_ms: u64,
    /// In ms.
    pub(super) cpu_ms: u64,
    pub(super) resident_bytes: u64,
    pub(super) virtual_bytes: u64,
    pub(super) threads: u64,
    pub(super) open_files: u64,
    pub(super) open_files_max: u64,
}

impl Process {
    pub(super) fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let system = fs::read_to_string("/proc/stat").ok()?;
        let booted_s: u64 =
            system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        // The program's name may have spaces and parentheses; what follows the last one are numbers, from the third on.
        let (_, numbers) = stat.rsplit_once(')')?;
        let numbers: Vec<&str> = numbers.split_whitespace().collect();
        let number = |field: usize| numbers.get(field - 3)?.parse::<u64>().ok();
        let ms = |ticks: u64| ticks.saturating_mul(1_000) / clock_ticks_per_second().max(1);
        Some(Self {
            started_ms: booted_s.saturating_mul(1_000).saturating_add(ms(number(22)?)),
            cpu_ms: ms(number(14)?.saturating_add(number(15)?)),
            resident_bytes: number(24)?.saturating_mul(u64::try_from(page_size()).unwrap_or(0)),
            virtual_bytes: number(23)?,
            threads: number(20)?,
            open_files: u64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).unwrap_or(0),
            open_files_max: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_memory_threads_and_files() {
        let process = Process::read().unwrap();
        assert!(process.resident_bytes > 1 << 20 && process.virtual_bytes >= process.resident_bytes);
        assert!(
            process.threads >= 1 && process.open_files >= 3 && process.open_files_max >= process.open_files
        );
        assert!(process.started_ms > 1_600_000_000_000);
    }
}
