//! A disk that is slow, or fails: the node's own syncs are held back or refused by `strace`.
//!
//! Owns: one tracer of one thread. The log's thread alone is traced, so the rest of the node, its heartbeats too, goes
//! on at full speed.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The thread of `raft-log` that writes and syncs, as far as the kernel keeps its name (15 bytes).
const LOG_THREAD: &str = "chunked_wal_flu";

/// What a sync does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DiskFault {
    /// Takes so much longer.
    Slow(Duration),
    /// Fails with an I/O error.
    Fails,
}

/// As long as it lives, the disk is bad.
pub(crate) struct SlowDisk {
    tracer: Child,
}

impl SlowDisk {
    /// Makes the log disk of a process bad. What the tracer says goes to `log`.
    pub(super) fn of(process: u32, fault: DiskFault, log: &Path) -> Self {
        let thread = log_thread(process).expect("the node has no thread that syncs the log");
        let inject = match fault {
            DiskFault::Slow(by) => format!("inject=fdatasync,fsync:delay_enter={}", by.as_micros()),
            DiskFault::Fails => "inject=fdatasync,fsync:error=EIO".to_owned(),
        };
        let words = File::options().create(true).append(true).open(log).unwrap();
        let mut tracer = Command::new("strace");
        tracer.args(["-p", &thread.to_string(), "-e", "trace=fdatasync,fsync", "-e", &inject]);
        let tracer = tracer.stdin(Stdio::null()).stdout(Stdio::null()).stderr(words).spawn().unwrap();
        let traced = Path::new("/proc").join(process.to_string()).join("task").join(thread.to_string());
        let is_traced = || match std::fs::read_to_string(traced.join("status")) {
            Ok(status) => (!status.contains("TracerPid:\t0\n")).then_some(()),
            // It is traced, and its first failed sync was its end.
            Err(_) => Some(()),
        };
        crate::clock::wait_for(Duration::from_secs(5), is_traced).expect("strace doesn't attach to the node");
        Self { tracer }
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // TERM, so that it lets go of the node in good order.
        let process = rustix::process::Pid::from_child(&self.tracer);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).ok();
        drop(self.tracer.wait());
    }
}

fn log_thread(process: u32) -> Option<u32> {
    let tasks = std::fs::read_dir(Path::new("/proc").join(process.to_string()).join("task")).ok()?;
    let is_it = |task: &std::path::PathBuf| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == LOG_THREAD)
    };
    let task = tasks.flatten().map(|task| task.path()).find(is_it)?;
    task.file_name()?.to_str()?.parse().ok()
}
