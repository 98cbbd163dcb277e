//! The command and everything that it starts, as one process group.
//!
//! Owns: starting it, signals to it, who of it still lives. Never: decides when to signal.

use super::environment::Environment;
use super::terminal;
use crate::parent::die_with;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, set_child_subreaper,
    test_kill_process_group, waitpgid, waitpid,
};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Whether the command gets the terminal's foreground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foreground {
    /// From its first instruction on.
    Take,
    /// There is no terminal to take.
    Leave,
}

/// How the command itself ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// With this code.
    Code(u8),
    /// By this signal.
    Signal(i32),
}

/// What has changed since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The command was stopped.
    Stopped,
    /// Nothing that matters.
    Nothing,
}

/// A running group.
#[derive(Debug)]
pub(super) struct Group {
    id: Pid,
    ended: Option<Ended>,
}

impl Group {
    /// Starts the command as leader of a new group, in this environment.
    pub(super) fn start(
        command: &[OsString],
        environment: &Environment,
        foreground: Foreground,
    ) -> io::Result<Self> {
        // Orphans of the group come to us, so that we see them end; a container's first process may not look.
        set_child_subreaper(Some(getpid()))?;
        let [program, arguments @ ..] = command else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no command was given"));
        };
        let mut child = Command::new(program);
        child.args(arguments).process_group(0);
        environment.give_to(&mut child);
        let wrapper = getpid();
        let before_exec = move || {
            die_with(wrapper)?;
            if foreground == Foreground::Take {
                terminal::take_in_child();
            }
            Ok(())
        };
        #[expect(unsafe_code, reason = "the parent-death signal can only be set by the child itself")]
        // SAFETY: `before_exec` makes system calls alone: it allocates nothing, takes no lock, and touches no memory
        // of other threads.
        unsafe {
            child.pre_exec(before_exec);
        }
        let child = child.spawn()?;
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| io::Error::other("the system gave a process id of 0"))?;
        Ok(Self { id, ended: None })
    }

    /// The group's id: the command's process id.
    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// How the command ended, once it has.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Sends a signal to every process of the group. One that is gone needs none.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.id, signal);
    }

    /// Whether no process of the group is left. Once true, the id may soon be somebody else's.
    pub(super) fn is_empty(&self) -> bool {
        self.ended.is_some() && test_kill_process_group(self.id) == Err(Errno::SRCH)
    }

    /// Takes note of those that have ended or stopped.
    pub(super) fn look(&mut self) -> Change {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        let mut change = Change::Nothing;
        while self.ended.is_none() {
            match waitpid(Some(self.id), options) {
                Ok(Some((_, status))) if status.stopped() => change = Change::Stopped,
                Ok(Some((_, status))) => self.ended = ended(status),
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => break,
            }
        }
        // The command keeps its process id reserved until it was waited for; so its orphans come second.
        while self.ended.is_some() {
            match waitpgid(self.id, WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) | Err(_) => break,
            }
        }
        change
    }
}

fn ended(status: WaitStatus) -> Option<Ended> {
    let code = status.exit_status().map(|code| Ended::Code(u8::try_from(code).unwrap_or(u8::MAX)));
    code.or_else(|| status.terminating_signal().map(Ended::Signal))
}
