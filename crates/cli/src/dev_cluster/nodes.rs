//! The processes of a dev-cluster.
//!
//! Owns: starting them, their pid files, and that none of them outlives this process. Never: talks to one but by
//! signals.

use super::layout::Node;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::parent::die_with;
use crate::signals::Signals;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long a node may take to stop: handing over, letting answers out and closing its log are bounded by less.
const STOP_WITHIN: Duration = Duration::from_secs(20);

/// Those that run.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    running: BTreeMap<usize, Running>,
    ends: JoinSet<(usize, io::Result<ExitStatus>)>,
}

#[derive(Debug)]
struct Running {
    id: u32,
    /// Names this process and no later one of the same number.
    handle: OwnedFd,
    pid_file: PathBuf,
}

/// A node that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Which one.
    pub(super) index: usize,
    /// By a code or a signal.
    pub(super) how: String,
}

impl Nodes {
    /// Starts a node. It is killed when this process ends, however that is.
    pub(super) fn start(&mut self, node: &Node) -> Result<(), Failure> {
        let failed = |what: &str, error: &io::Error| {
            Failure::new(Exit::Refused, format!("start node-{}: {what}: {error}", node.index))
        };
        let log = File::options().create(true).append(true).open(node.log());
        let log = log.map_err(|error| failed("open its log", &error))?;
        let mut command = command(node).map_err(|error| failed("find this program", &error))?;
        command.stdout(log.try_clone().map_err(|error| failed("open its log", &error))?).stderr(log);
        let mut child = command.spawn().map_err(|error| failed("start the process", &error))?;
        let id = child.id().unwrap_or_default();
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
        let handle = pid.ok_or(rustix::io::Errno::SRCH).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
        let handle = handle.map_err(|error| failed("hold on to the process", &error.into()))?;
        let pid_file = node.pid_file();
        write_whole(&pid_file, &format!("{id}\n")).map_err(|error| failed("write its pid file", &error))?;
        self.running.insert(node.index, Running { id, handle, pid_file });
        let index = node.index;
        self.ends.spawn(async move { (index, child.wait().await) });
        Ok(())
    }

    /// How many run.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// The process id of a node that runs.
    pub(super) fn process_id(&self, index: usize) -> Option<u32> {
        self.running.get(&index).map(|running| running.id)
    }

    /// Waits for the next one to end; `None` when none runs. May be dropped and called again.
    pub(super) async fn next_end(&mut self) -> Option<Ended> {
        loop {
            // A wait that panicked tells nothing of its node, and there is none that panics.
            let Ok((index, status)) = self.ends.join_next().await? else { continue };
            if let Some(running) = self.running.remove(&index) {
                // The number may soon be another process's.
                drop(std::fs::remove_file(running.pid_file));
            }
            return Some(Ended { index, how: status.map_or_else(|error| error.to_string(), how) });
        }
    }

    /// Stops all that run: by TERM, and by KILL when that takes too long or somebody asks a second time.
    pub(super) async fn stop(&mut self, signals: &mut Signals, output: &Output) {
        self.signal(Signal::TERM);
        let mut is_patient = true;
        loop {
            tokio::select! {
                ended = self.next_end() => if ended.is_none() { return },
                () = sleep(STOP_WITHIN), if is_patient => {
                    output.say(&format!("{} nodes didn't stop within {STOP_WITHIN:?}: killing them", self.running()));
                    is_patient = false;
                    self.signal(Signal::KILL);
                }
                _ = signals.next_ending(), if is_patient => {
                    output.say("asked again: killing the nodes that still run");
                    is_patient = false;
                    self.signal(Signal::KILL);
                }
            }
        }
    }

    fn signal(&self, signal: Signal) {
        for running in self.running.values() {
            // One that has just ended needs none.
            let _ = pidfd_send_signal(&running.handle, signal);
        }
    }
}

fn command(node: &Node) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("server").arg("--data").arg(node.data());
    command.args(["--http", &node.http().to_string()]);
    command.args(["--native", &node.native().to_string()]);
    command.args(["--peer", &node.peer().to_string()]);
    command.args(["--zone", &format!("zone-{}", node.index)]);
    command.arg("--wait-for-cluster").stdin(Stdio::null()).kill_on_drop(true);
    // Settings in the environment are meant for one node, and these are several.
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"KUNCI_") {
            command.env_remove(name);
        }
    }
    // Ctrl-C is for dev-cluster: nodes in its group would get it too, and a second time from it.
    command.process_group(0);
    let parent = getpid();
    let before_exec = move || die_with(parent);
    #[expect(unsafe_code, reason = "the parent-death signal can only be set by the child itself")]
    // SAFETY: `die_with` makes system calls alone: it allocates nothing, takes no lock, and touches no memory of other
    // threads.
    unsafe {
        command.pre_exec(before_exec);
    }
    Ok(command)
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Whoever reads the file finds all of it or nothing.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text)?;
    std::fs::rename(beside, path)
}
